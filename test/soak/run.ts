/** The command line of the soak: `npm run test:soak -- [--minutes N | --seconds N] [--seed N] [--controls]`. */
import { parseArgs } from "node:util";
import { type End, endingAll } from "../support/ending-all.ts";
import { runSoak, type SoakResult } from "./soak.ts";

/** By what probe.mjs calls them. */
const FAULTS = {
  descriptors: "a leak of descriptors",
  watches: "a leak of watches",
  memory: "a leak of memory",
  files: "a leak of files",
  tasks: "a task that waits for nothing",
};

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "60" },
      seconds: { type: "string" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      controls: { type: "boolean", default: false },
      leak: { type: "string" },
    },
  });
  const seconds =
    values.seconds === undefined ? Number(values.minutes) * 60 : Number(values.seconds);
  const soak = (leak?: string): Promise<SoakResult> =>
    soakOnce(seconds, Number(values.seed), leak ?? values.leak);
  if (!values.controls) return (await soak()).problems.length === 0 ? 0 : 1;
  let caught = 0;
  for (const [leak, what] of Object.entries(FAULTS)) {
    const isCaught = (await soak(leak)).problems.length > 0;
    if (isCaught) caught += 1;
    console.log(`${isCaught ? "caught" : "NOT CAUGHT"}: ${what}`);
  }
  const count = Object.keys(FAULTS).length;
  console.log(`${count} faults on purpose, ${caught} caught`);
  return caught === count ? 0 : 1;
}

async function soakOnce(
  seconds: number,
  seed: number,
  leak: string | undefined,
): Promise<SoakResult> {
  return endingAll(async (ends) => {
    const onProgress = (text: string): void => {
      if (seconds > 60) console.log(text);
    };
    const options = {
      seconds,
      seed,
      onProgress,
      onEnd: (work: End) => ends.push(work),
    };
    const result = await runSoak(leak === undefined ? options : { ...options, leak });
    report(result, seconds, seed, leak === undefined ? "" : "  ");
    return result;
  });
}

/** @param indent sets apart what leaks on purpose show */
function report(result: SoakResult, seconds: number, seed: number, indent: string): void {
  const say = (text: string): void => console.log(indent + text);
  const width = Math.max(...result.figures.map(({ name }) => name.length));
  for (const { name, before, after, growth, allowed } of result.figures) {
    const trend = `${growth < 0 ? "" : "+"}${growth.toFixed(1)} of ${allowed.toFixed(1)}`;
    say(`${name.padEnd(width)}  ${before.toFixed(1)} → ${after.toFixed(1)}  ${trend}`);
  }
  for (const problem of result.problems) say(`PROBLEM: ${problem}`);
  say(
    `${seconds} s, seed ${seed}: ${result.tasks} tasks (${result.settled} records taken away), ${result.batches} batches, ` +
      `${result.commands} commands, ${result.edits} edits of the plan, ${result.rotations} rotations; ` +
      `nothing that could run has waited for more than ${result.longestIdleMs.toFixed(0)} ms`,
  );
  say(
    `${result.figures.length} figures, ${result.samples} samples, ${result.problems.length} problems`,
  );
}
