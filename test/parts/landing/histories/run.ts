/**
 * Random histories of landings: `npm run test:landing -- [--runs N] [--seed N] [--jobs N] [--seconds N] [--controls]`. Each one has a seed;
 * `--seed S --runs 1` plays the same plan again.
 */
import { parseArgs } from "node:util";
import { breakBuild, brokenGit, UNCHECKED } from "../../../support/broken.ts";
import type { OnEnd } from "../../../support/temp-dir.ts";
import { type HistoryOptions, type HistoryResult, playHistory } from "./history.ts";

/** Variants that are broken on purpose: a reader that does not notice them is worth nothing. */
const CONTROLS: readonly {
  name: string;
  sign: RegExp;
  options: (onEnd: OnEnd) => Partial<HistoryOptions>;
}[] = [
  { name: "lost-saves", sign: /^lost: /, options: () => ({ brokenGit: brokenGit("save") }) },
  { name: "blind-move", sign: /^target: /, options: () => ({ brokenGit: brokenGit("move") }) },
  { name: "twice", sign: /^twice: /, options: () => ({ brokenGit: brokenGit("twice") }) },
  {
    name: "unchecked",
    sign: /^target: .*not checked/,
    options: (onEnd) => ({ launcher: breakBuild(onEnd, UNCHECKED) }),
  },
];
const CONTROL_TRIES_MAX = 40;

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: "string", default: "1000" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      jobs: { type: "string", default: "5" },
      seconds: { type: "string", default: "7200" },
      controls: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
    },
  });
  const seed = Number(values.seed);
  console.log(`seed ${seed}`);
  if (values.controls) return runControls(seed);
  const untilMs = performance.now() + Number(values.seconds) * 1000;
  const total = { histories: 0, kills: 0, starts: 0, landed: 0, together: 0, failed: 0 };
  let next = 0;
  const playNext = async (): Promise<void> => {
    while (next < Number(values.runs) && performance.now() < untilMs) {
      const one = seed + next++;
      const result = await playOnce(one, {}, values.keep);
      total.histories++;
      total.kills += result.kills;
      total.starts += result.starts;
      total.landed += result.landed;
      total.together += result.together;
      if (result.problems.length > 0) total.failed++;
      for (const problem of result.problems)
        console.log(`PROBLEM with --seed ${one} --runs 1: ${problem} (kept in ${result.dir})`);
      if (total.histories % 50 === 0) console.log(`… ${JSON.stringify(total)}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, playNext));
  const { histories, kills, starts, landed, together, failed } = total;
  console.log(
    `${histories} histories, ${landed} landings (${together} of them together), ${kills} kills at calls of git, ${starts} starts, ${failed} failed`,
  );
  return failed === 0 ? 0 : 1;
}

/** @param isKept its folder stays, also when all was well */
export async function playOnce(
  seed: number,
  options: Partial<HistoryOptions>,
  isKept = false,
): Promise<HistoryResult> {
  const ends: (() => void | Promise<void>)[] = [];
  const result = await playHistory(seed, { ...options, onEnd: (work) => ends.push(work) });
  // The folder tells what happened; what it had running goes.
  if (isKept || (result.problems.length > 0 && Object.keys(options).length === 0)) ends.shift();
  for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  return result;
}

async function runControls(seed: number): Promise<number> {
  let caught = 0;
  for (const { name, sign, options } of CONTROLS) {
    const ends: (() => void | Promise<void>)[] = [];
    const broken = options((work) => ends.push(work));
    let tries = 0;
    let problem: string | undefined;
    while (problem === undefined && tries < CONTROL_TRIES_MAX) {
      const { problems } = await playOnce(seed + tries++, broken);
      problem = problems.find((text) => sign.test(text));
    }
    for (const end of ends) await end();
    if (problem !== undefined) caught++;
    console.log(
      `${problem === undefined ? "NOT CAUGHT" : "caught"}: ${name} in history ${tries}: ${problem?.slice(0, 160)}`,
    );
  }
  console.log(`controls: ${CONTROLS.length} broken variants, ${caught} caught`);
  return caught === CONTROLS.length ? 0 : 1;
}
