/**
 * The command line of the storm: `npm run test:cluster -- [--tasks N] [--machines N] [--servers N] [--faults N] [--seed N] [--hold SECONDS]
 * [--min-ms N] [--max-ms N] [--ack-wait-ms N] [--minutes N] [--break NAME]`. --minutes: it must be over by then, and ends its faults before; 60 without it. --break: with bridges that are broken as `broken.ts` says; the storm must then end with 1.
 */
import { parseArgs } from "node:util";
import { anySeed } from "../../../crash/chaos/chaos.ts";
import { endingAll } from "../../../support/ending-all.ts";
import install from "../nats/found.ts";
import { runStorm, type StormResult } from "./storm.ts";

const PROBLEMS_SHOWN = 40;

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      tasks: { type: "string", default: "300" },
      machines: { type: "string", default: "3" },
      servers: { type: "string", default: "1" },
      faults: { type: "string", default: "40" },
      seed: { type: "string" },
      hold: { type: "string", default: "5" },
      "min-ms": { type: "string", default: "200" },
      "max-ms": { type: "string", default: "1500" },
      "ack-wait-ms": { type: "string", default: "6000" },
      minutes: { type: "string", default: "60" },
      break: { type: "string" },
    },
  });
  install();
  const seed = values.seed === undefined ? anySeed() : Number(values.seed);
  console.log(`seed ${seed}`);
  return endingAll(async (ends) => {
    const result = await runStorm({
      seed,
      tasks: Number(values.tasks),
      machines: Number(values.machines),
      servers: Number(values.servers),
      faults: Number(values.faults),
      minMs: Number(values["min-ms"]),
      maxMs: Number(values["max-ms"]),
      holdMs: Number(values.hold) * 1000,
      ackWaitMs: Number(values["ack-wait-ms"]),
      minutes: Number(values.minutes),
      ...(values.break === undefined ? {} : { broken: values.break }),
      onEnd: (work) => ends.push(work),
      onProgress: (text) => console.log(text),
    });
    report(result);
    return result.problems.length === 0 ? 0 : 1;
  });
}

function report({ problems, faults, late, overlaps, ...result }: StormResult): void {
  const { runs, runsAgain, starts, seconds, tasks } = result;
  for (const problem of problems.slice(0, PROBLEMS_SHOWN)) console.log(`PROBLEM: ${problem}`);
  const total = sumOf(faults);
  console.log(inOrder(faults));
  console.log(
    `${runs} runs, ${runsAgain} of them again; ${starts} starts of bridges and supervisors, ${seconds.toFixed(0)} s`,
  );
  const beside = sumOf(overlaps);
  console.log(
    `${beside} runs beside another one of their task that a fault explains${beside === 0 ? "" : `: ${inOrder(overlaps)}`}`,
  );
  if (late > 0)
    console.log(`a bridge or a server waited for a processor ${late} times: a slow machine`);
  console.log(`${tasks} tasks, ${total} faults, ${problems.length} problems`);
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

function inOrder(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return sorted.map(([kind, count]) => `${kind} ${count}`).join(", ");
}
