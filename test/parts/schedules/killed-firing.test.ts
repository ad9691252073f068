/**
 * A supervisor that is killed at each of its changing calls while a schedule fires, and then two at once that go on: each time runs at
 * most once, and exactly the times of its rule for missed ones. `npm run test:schedule-kills` strikes at every call, this at some.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, sampleOf, sampleOfCalls } from "../../support/walks.ts";

const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));
/** It strikes before and after so many calls, or at all. */
const SAMPLE = 2;
const AT_ONCE = IS_WHOLE ? 6 : 3;
const MIN = 60_000;
const START = Date.parse("2026-03-29T00:00:00Z");

interface Strike {
  at: number;
  when?: "before" | "after";
}
const NEVER: Strike = { at: 0 };

let built: string | undefined;

async function builtProgram(): Promise<string> {
  const program = startProgram("fires.mjs", []);
  const { exitCode } = await program.ended;
  expect(exitCode, program.stderr()).toBe(0);
  return program.stdout();
}

/** Looks after the schedules once. @returns how many changing calls it made */
async function fire(state: string, nowMs: number, { at, when }: Strike = NEVER): Promise<number> {
  const report = join(tempDir(), "report");
  const plan = { role: "main", root: state, act: "kill", report, at, when };
  built ??= await builtProgram();
  const program = startProgram("fires.mjs", [state, String(nowMs)], {
    env: {
      MAILCHUTE_BUILT: built,
      MAILCHUTE_CRASH: JSON.stringify(plan),
      NODE_OPTIONS: `--require ${HOOK}`,
    },
  });
  const { exitCode, signal } = await program.ended;
  expect(signal === "SIGKILL" ? 0 : exitCode, program.stderr()).toBe(0);
  const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
  return JSON.parse(last).count;
}

/** Takes the tasks out of the inbox, as if they had run and their records were gone. Those with a ticket are not accepted yet. */
function takeAway(state: string): string[] {
  const inbox = join(state, "mailbox", "inbox");
  if (!fs.existsSync(inbox)) return [];
  return fs.readdirSync(inbox).filter((file) => {
    const path = join(inbox, file);
    if (!file.endsWith(".json") || fs.statSync(path).nlink > 1) return false;
    fs.unlinkSync(path);
    return true;
  });
}

/** The minutes after the start of these tasks, in order. */
const minutesOf = (files: readonly string[]): number[] =>
  files
    .map((file) =>
      Date.parse(file.replace(/.*(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z.*/, "$1-$2-$3T$4:$5:$6Z")),
    )
    .map((ms) => (ms - START) / MIN)
    .sort((a, b) => a - b);

/** A schedule with a time each 5 minutes, whose file was seen at the start. @returns what makes trees with it */
async function prepare(missed: string): Promise<() => string> {
  const template = join(tempDir(), "state");
  fs.mkdirSync(join(template, "schedules"), { recursive: true });
  fs.writeFileSync(
    join(template, "schedules", "s.yaml"),
    `every: 5m\nmissed: ${missed}\noverlap: allow\ntask: {exec: ['true']}\n`,
  );
  await fire(template, START);
  return () => {
    const state = join(tempDir(), "state");
    fs.cpSync(template, state, { recursive: true });
    return state;
  };
}

/** Kills at this call, and goes on. @param forgets a broken variant: nothing says what was submitted. @returns the times that ran */
async function strikeAt(state: string, strike: Strike, forgets = false): Promise<number[]> {
  await fire(state, START + 17 * MIN, strike);
  const ran = strike.at % 2 === 0 || forgets ? takeAway(state) : [];
  if (forgets) fs.rmSync(join(state, "mailbox", ".once"), { recursive: true });
  // Two supervisors, by mistake, and then one.
  await Promise.all([fire(state, START + 18 * MIN), fire(state, START + 18 * MIN)]);
  ran.push(...takeAway(state));
  await fire(state, START + 19 * MIN);
  ran.push(...takeAway(state));
  expect(fs.readdirSync(join(state, "mailbox", "inbox"))).toEqual([]);
  return minutesOf(ran);
}

const RULES: [string, number[]][] = [
  ["one", [15]],
  ["all", [5, 10, 15]],
  ["none", []],
];

it.each(sampleOf(RULES, 1))(
  "missed: %s fires just %j, wherever the supervisor is killed",
  async (missed, expected) => {
    const copy = await prepare(missed);
    const calls = await fire(copy(), START + 17 * MIN);
    expect(calls).toBeGreaterThan(expected.length * 4);
    const strikes = sampleOfCalls(calls, SAMPLE).flatMap((at): Strike[] => [
      { at, when: "before" },
      { at, when: "after" },
    ]);
    const check = async (strike: Strike): Promise<void> => {
      const text = `killed ${strike.when} call ${strike.at} of ${calls}`;
      expect(await strikeAt(copy(), strike), text).toEqual(expected);
    };
    for (let i = 0; i < strikes.length; i += AT_ONCE)
      await Promise.all(strikes.slice(i, i + AT_ONCE).map(check));
  },
  3_600_000,
);

it("a variant that does not know what it has submitted is caught", async () => {
  const copy = await prepare("all");
  const calls = await fire(copy(), START + 17 * MIN);
  let isCaught = false;
  for (let at = calls; at > 0 && !isCaught; at -= 2) {
    const ran = await strikeAt(copy(), { at, when: "before" }, true);
    isCaught = ran.length > new Set(ran).size;
  }
  expect(isCaught).toBe(true);
});
