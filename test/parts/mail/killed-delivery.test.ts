/**
 * A supervisor that is killed at each of its changing calls while it delivers mail, notes what was read and what has failed, and tells of
 * an exit. `npm run test:mail-kills` strikes at every call, this at some.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BROKEN } from "../../crash/mail/broken.ts";
import {
  faultsNow,
  faultsOfEnd,
  goOn,
  type MailTree,
  newMailTree,
  post,
  wakesIn,
} from "../../crash/mail/tree.ts";
import { startProgram } from "../../support/programs.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, sampleOfCalls } from "../../support/walks.ts";

const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));
/** It strikes before and after so many calls, or at all. */
const SAMPLE = 3;
const AT_ONCE = IS_WHOLE ? 6 : 3;
const TIMEOUT_MS = 3_600_000;

interface Strike {
  at: number;
  when?: "before" | "after";
}

let kills = 0;
let built: string | undefined;
/** Looks after the mail once. @param minutes its clock is ahead by so many @returns how many changing calls it made */
async function deliver(
  { state }: MailTree,
  { at, when }: Strike,
  { broken, minutes = 0 }: { broken?: string | undefined; minutes?: number } = {},
): Promise<{ calls: number; isKilled: boolean; text: string }> {
  const report = join(tempDir(), "report");
  const plan = { role: "main", root: state, act: "kill", report, at, when };
  const args = [state, String(minutes), ...(broken === undefined ? [] : [broken])];
  built ??= await builtProgram();
  const program = startProgram("delivers-mail.mjs", args, {
    env: {
      MAILCHUTE_BUILT: built,
      MAILCHUTE_CRASH: JSON.stringify(plan),
      NODE_OPTIONS: `--require ${HOOK}`,
    },
  });
  const { exitCode, signal } = await program.ended;
  const text = `${program.stdout()}${program.stderr()}`;
  expect(signal === "SIGKILL" ? 0 : exitCode, text).toBe(0);
  const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
  return { calls: JSON.parse(last).count, isKilled: signal === "SIGKILL", text };
}

async function builtProgram(): Promise<string> {
  const program = startProgram("delivers-mail.mjs", []);
  const { exitCode } = await program.ended;
  expect(exitCode, program.stderr()).toBe(0);
  return program.stdout();
}

const NEVER: Strike = { at: 0 };

/** A tree in which all of it is to be done. Not a copy of one: a copy would be another root. */
async function newTree(): Promise<MailTree> {
  const made = newMailTree(join(tempDir(), "state"));
  await deliver(made, NEVER);
  expect(wakesIn(made)).toHaveLength(2);
  goOn(made);
  return made;
}

/** @returns what was wrong then and afterwards */
async function strike(tree: MailTree, how: Strike, broken?: string): Promise<string[]> {
  const { isKilled } = await deliver(tree, how, { broken });
  if (isKilled) kills++;
  const faults = faultsNow(tree);
  post(tree.state, "ann", "-2");
  const { text } = await deliver(tree, NEVER, { broken });
  faults.push(...faultsOfEnd(tree));
  // The next wake-up of cid has another name.
  await deliver(tree, NEVER, { broken, minutes: 2 });
  const again = wakesIn(tree).filter((name) => name.endsWith(".1.1.json"));
  if (again.length !== 1) faults.push(`cid is not woken again: ${wakesIn(tree).join(", ")}`);
  const where = how.when === undefined ? "without a kill" : `${how.when} call ${how.at}`;
  return faults.map((fault) => `${where}: ${fault}\n${text}`);
}

/** What was wrong after each of these; with `isEnough` the others are left out once something was. */
async function strikeAll(
  all: readonly Strike[],
  { broken, isEnough = false }: { broken?: string; isEnough?: boolean } = {},
): Promise<string[]> {
  const left = [...all];
  const faults: string[] = [];
  const next = async (): Promise<void> => {
    for (let how = left.shift(); how !== undefined; how = left.shift()) {
      if (isEnough && faults.length > 0) return;
      const found = await strike(await newTree(), how, broken);
      // At once: the walk takes minutes.
      for (const fault of found) process.stdout.write(`${broken ?? "fault"}: ${fault}\n`);
      faults.push(...found);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return faults;
}

function strikesAt(calls: readonly number[]): Strike[] {
  // Spread over all calls from the first ones on, by the golden ratio.
  const place = (at: number): number => (at * 0.618) % 1;
  return calls
    .toSorted((a, b) => place(a) - place(b))
    .flatMap((at) => [
      { at, when: "before" as const },
      { at, when: "after" as const },
    ]);
}

describe("a supervisor that is killed at each of its changing calls", () => {
  it("has offered mail once, moved no cursor without proof, woken once for each record, and told the exit once", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { calls } = await deliver(await newTree(), NEVER);
    expect(calls).toBeGreaterThan(40);
    const faults = await strikeAll(strikesAt(sampleOfCalls(calls, SAMPLE)));
    process.stdout.write(`mail: ${kills} kills at ${calls} calls, ${faults.length} faults\n`);
    expect(faults).toEqual([]);
    expect(kills).toBeGreaterThan(IS_WHOLE ? calls : 2);
  });

  const shown = Object.keys(BROKEN).filter((name) => BROKEN[name]?.isOfRun !== true);
  it.runIf(IS_WHOLE).each(shown)("%s: that is found", { timeout: TIMEOUT_MS }, async (broken) => {
    const { calls } = await deliver(await newTree(), NEVER, { broken });
    const faults = await strikeAll([NEVER, ...strikesAt(sampleOfCalls(calls, calls))], {
      broken,
      isEnough: true,
    });
    expect(faults[0] ?? "not found").not.toBe("not found");
  });
});
