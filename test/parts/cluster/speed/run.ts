/**
 * The command line of the measurement: `npm run test:cluster-speed -- [--only rate,start,killed,growth,many,processor] [--rounds N]`. Ends with 1
 * when a goal is missed. The machine must have nothing else to do.
 */
import { parseArgs } from "node:util";
import { endingAll } from "../../../support/ending-all.ts";
import install from "../nats/found.ts";
import { measureMany } from "./many.ts";
import {
  type Found,
  type MeasureOptions,
  measureGrowth,
  measureKilled,
  measureRate,
  measureStart,
} from "./measures.ts";
import { measureProcessor } from "./processor.ts";
import { goalLine, isMet } from "./table.ts";

const MEASURES: Readonly<Record<string, (o: MeasureOptions) => Promise<Found>>> = {
  rate: measureRate,
  start: measureStart,
  killed: measureKilled,
  growth: measureGrowth,
  many: measureMany,
  processor: measureProcessor,
};

/** @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: Object.keys(MEASURES).join(",") },
      rounds: { type: "string", default: "3" },
    },
  });
  install();
  const found: Found[] = [];
  for (const name of values.only.split(",")) {
    const measure = MEASURES[name];
    if (measure === undefined) throw new Error(`--only: there is no ${name}`);
    console.log(`\n${name}`);
    const result = await inTurn(measure, Number(values.rounds));
    for (const line of result.lines) console.log(line);
    found.push(result);
  }
  const goals = found.flatMap((one) => one.goals);
  console.log(`\n${goals.map(goalLine).join("\n")}`);
  return goals.every(isMet) ? 0 : 1;
}

/** Ends all that it has started before the next one begins, and when a signal comes. */
async function inTurn(
  measure: (o: MeasureOptions) => Promise<Found>,
  rounds: number,
): Promise<Found> {
  return endingAll((ends) =>
    measure({
      rounds,
      onEnd: (work) => ends.push(work),
      tell: (text) => console.log(`    ${text}`),
    }),
  );
}
