/**
 * The bridges of a tree that sends and of two machines, killed at each of their changing calls, at the servers, too; others go on, some
 * of them later than `ack_wait`. The task has one settlement, no run too many, and nothing is left anywhere. `npm run test:cluster-kills`
 * strikes at every call, this at some.
 */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { BROKEN } from "../../crash/cluster/broken.ts";
import { CASES, type Case } from "../../crash/cluster/cases.ts";
import { faultsOfEnd, runsAgain } from "../../crash/cluster/check.ts";
import { makeTrees, worldOf } from "../../crash/cluster/places.ts";
import { startProgram } from "../../support/programs.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { sampleOf, sampleOfCalls, WALKS_SEED } from "../../support/walks.ts";

const HOOK = fileURLToPath(new URL("../../crash/hook.cjs", import.meta.url));
/** So many cases, and calls of each of them; or all. */
const SAMPLE = 2;
const AT_ONCE = 3;
const TIMEOUT_MS = 3_600_000;
/** One in so many kills is followed by one of those who go on. */
const SECOND_KILLS = 4;

interface Strike {
  at: number;
  how: "before" | "after" | "torn";
}

/**
 * Whose bridges go on after a kill; the others come later than `ack_wait`, with a `!` when the servers have lost all. Where the first machine,
 * which has the task mostly, goes on, no run may be repeated. What is delivered goes to the other one first.
 */
const ALL = "oba";
const SOME = ["ob", "o", "ba", "ba!"];

/** In this one the names of the trees are made, too. */
const FIRST_CASE = "completes";

const totals = { kills: 0, calls: 0, runsAgain: 0 };
afterAll(() => {
  const { kills, calls, runsAgain: again } = totals;
  process.stdout.write(`cluster: ${kills} kills at ${calls} calls; ${again} runs again\n`);
});

let built: string | undefined;

async function builtProgram(): Promise<string> {
  const program = startProgram("carries.mjs", []);
  const { exitCode } = await program.ended;
  expect(exitCode, program.stderr()).toBe(0);
  return program.stdout();
}

interface Carried {
  isKilled: boolean;
  calls: string[];
  /** What was wrong with the process itself. */
  faults: string[];
}

interface Carry {
  strike?: Strike | undefined;
  first?: string;
  broken?: string | undefined;
}

async function carry(dir: string, name: string, options: Carry = {}): Promise<Carried> {
  const { strike, first = "oab", broken } = options;
  const report = join(tempDir(), "report");
  const { at = 0, how = "before" } = strike ?? {};
  const act = how === "torn" ? { act: "torn" } : { act: "kill", when: how };
  const plan = { role: "main", root: worldOf(dir), report, at, ...act };
  built ??= await builtProgram();
  const program = startProgram(
    "carries.mjs",
    [dir, name, first, ...(broken === undefined ? [] : [broken])],
    {
      env: {
        MAILCHUTE_BUILT: built,
        MAILCHUTE_CRASH: JSON.stringify(plan),
        NODE_OPTIONS: `--require ${HOOK}`,
      },
    },
  );
  const { exitCode, signal } = await program.ended;
  const isKilled = signal === "SIGKILL";
  if (isKilled) totals.kills++;
  const last = fs.readFileSync(report, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
  const { calls = [] } = JSON.parse(last) as { calls?: string[] };
  const said = `${program.stdout()}${program.stderr()}`;
  return { isKilled, calls, faults: isKilled || exitCode === 0 ? [] : [said] };
}

function newTrees(name: string): string {
  const dir = tempDir();
  makeTrees(dir, CASES[name]?.task ?? {}, name !== FIRST_CASE);
  return dir;
}

/** Kills at these calls, one process after the other, and lets the last one go on. @returns what was wrong */
async function strike(
  name: string,
  strikes: readonly Strike[],
  first: string,
  broken?: string,
): Promise<string[]> {
  const dir = newTrees(name);
  const faults: string[] = [];
  for (const one of strikes) {
    const begun = await carry(dir, name, { strike: one, broken });
    faults.push(...begun.faults);
  }
  const { faults: last } = await carry(dir, name, { first, broken });
  faults.push(...last, ...faultsOfEnd(dir, CASES[name] as Case, !first.includes("a")));
  totals.runsAgain += runsAgain(dir);
  fs.rmSync(dir, { recursive: true });
  const where = strikes.map(({ at, how }) => `${how} call ${at}`).join(", ");
  return faults.map((fault) => `${name}, killed ${where}, goes on with ${first}: ${fault}`);
}

/** What was wrong after each of these; with `isEnough` the others are left out once something was. */
async function inTurn(
  works: readonly (() => Promise<string[]>)[],
  isEnough = false,
): Promise<string[]> {
  const left = [...works];
  const faults: string[] = [];
  const next = async (): Promise<void> => {
    for (let work = left.shift(); work !== undefined; work = left.shift()) {
      if (isEnough && faults.length > 0) return;
      const found = await work();
      // At once: the walk takes minutes.
      for (const fault of found) process.stdout.write(`${fault}\n`);
      faults.push(...found);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return faults;
}

/** Each kill at these calls of a process that has made all of them. */
function strikesAt(at: readonly number[], calls: readonly string[]): Strike[] {
  // After a call and before the next one are the same moment to those who go on.
  return at.flatMap((call): Strike[] => [
    { at: call, how: "before" },
    ...(calls[call - 1] === "write" ? [{ at: call, how: "torn" } as const] : []),
    ...(call === calls.length ? [{ at: call, how: "after" } as const] : []),
  ]);
}

async function callsOf(name: string, broken?: string): Promise<string[]> {
  const { calls, faults } = await carry(newTrees(name), name, { broken });
  expect(broken === undefined ? faults : []).toEqual([]);
  return calls;
}

describe("a task whose bridges are killed at each of their changing calls", () => {
  it.each(sampleOf(Object.keys(CASES), SAMPLE))("%s", { timeout: TIMEOUT_MS }, async (name) => {
    const calls = await callsOf(name);
    totals.calls += calls.length;
    expect(calls.length).toBeGreaterThan(15);
    const strikes = strikesAt(sampleOfCalls(calls.length, SAMPLE), calls);
    const some = (at: number): string => SOME[at % SOME.length] ?? ALL;
    const works = strikes.flatMap((one, index) => [
      () => strike(name, [one], ALL),
      () => strike(name, [one], some(index)),
    ]);
    // Killed again in what goes on.
    const random = seededRandom(WALKS_SEED);
    for (const one of strikes.filter((_, index) => index % SECOND_KILLS === 0)) {
      const second: Strike = { at: 1 + random.below(calls.length), how: "before" };
      const third: Strike = { at: 1 + random.below(calls.length), how: "after" };
      works.push(() => strike(name, [one, second], ALL));
      works.push(() => strike(name, [one, second, third], some(second.at)));
    }
    expect(await inTurn(works)).toEqual([]);
  });

  it.each(sampleOf(Object.keys(BROKEN), 1))(
    "that is broken is found: %s",
    { timeout: TIMEOUT_MS },
    async (broken) => {
      const name = BROKEN[broken]?.in ?? "";
      const calls = await callsOf(name, broken);
      const all = calls.map((_, index) => index + 1);
      const first = BROKEN[broken]?.first ?? ALL;
      const works = strikesAt(all, calls).map((one) => () => strike(name, [one], first, broken));
      expect((await inTurn(works, true))[0] ?? "not found").not.toBe("not found");
    },
  );
});
