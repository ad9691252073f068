/** The command line of the chaos: `npm run test:chaos -- [--tasks N] [--faults N] [--seed N] [--seconds N] [--controls]`. */
import { parseArgs } from "node:util";
import { endingAll } from "../../support/ending-all.ts";
import { anySeed, type ChaosOptions, type ChaosResult, runChaos } from "./chaos.ts";

const CONTROLS = [
  "no-fence",
  "claim-by-copy",
  "marker-first",
  "result-in-place",
  "backoff-by-mtime",
];

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      tasks: { type: "string", default: "10000" },
      faults: { type: "string", default: "2000" },
      seed: { type: "string" },
      seconds: { type: "string", default: "3600" },
      "min-ms": { type: "string", default: "50" },
      "max-ms": { type: "string", default: "500" },
      broken: { type: "string" },
      controls: { type: "boolean", default: false },
      quiet: { type: "boolean", default: false },
    },
  });
  const seed = values.seed === undefined ? anySeed() : Number(values.seed);
  const options: Omit<ChaosOptions, "onEnd"> = {
    seed,
    tasks: Number(values.tasks),
    faults: Number(values.faults),
    seconds: Number(values.seconds),
    minMs: Number(values["min-ms"]),
    maxMs: Number(values["max-ms"]),
    calmSeconds: 60 + Number(values.tasks) / 20,
    ...(values.broken === undefined ? {} : { broken: values.broken }),
    ...(values.quiet ? {} : { onProgress: (text: string) => console.log(text) }),
  };
  if (!values.controls) {
    const isControl = values.broken !== undefined;
    return (await runOnce(options, isControl)).problems.length === 0 ? 0 : 1;
  }
  let caught = 0;
  for (const broken of CONTROLS) {
    const { problems } = await runOnce({ ...options, broken }, true);
    if (problems.length > 0) caught += 1;
    console.log(`${problems.length > 0 ? "caught" : "NOT CAUGHT"}: ${broken}`);
  }
  console.log(`${CONTROLS.length} broken variants, ${caught} caught`);
  return caught === CONTROLS.length ? 0 : 1;
}

async function runOnce(
  options: Omit<ChaosOptions, "onEnd">,
  isControl = false,
): Promise<ChaosResult> {
  console.log(`seed ${options.seed}`);
  return endingAll(async (ends) => {
    const result = await runChaos({ ...options, onEnd: (work) => ends.push(work) });
    report(result, isControl ? "  " : "");
    // The folder tells what happened; what it had running goes.
    if (result.problems.length > 0 && !isControl) {
      ends.shift();
      console.log(`kept in ${result.dir}; again with --seed ${options.seed}`);
    }
    return result;
  });
}

const PROBLEMS_SHOWN = 40;

/** @param indent sets apart what broken variants show */
function report(result: ChaosResult, indent: string): void {
  const say = (text: string): void => console.log(indent + text);
  for (const problem of result.problems.slice(0, PROBLEMS_SHOWN)) say(`PROBLEM: ${problem}`);
  const faults = [...result.faults].sort(([, a], [, b]) => b - a);
  const total = faults.reduce((sum, [, count]) => sum + count, 0);
  say(faults.map(([kind, count]) => `${kind} ${count}`).join(", "));
  const again = ((result.runs / result.runsNeeded - 1) * 100).toFixed(1);
  say(
    `${result.runs} runs for the ${result.runsNeeded} that were needed: ${again} % again; ` +
      `${result.starts} starts of a supervisor, ${result.commands} commands, ${result.seconds.toFixed(0)} s; ` +
      `nothing that could run has waited for more than ${result.longestIdleMs.toFixed(0)} ms`,
  );
  say(`${result.tasks} tasks, ${total} faults, ${result.problems.length} problems`);
}
