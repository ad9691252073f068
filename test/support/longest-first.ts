/** Starts the files that take longest first, so that none of them is what everybody waits for in the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Longest first, as they were on two processors. What is not here comes after them, largest first. */
const LONGEST = [
  "crash/every-step",
  "supervisor/control/commands",
  "crash/chaos",
  "crash/rights",
  "roadmap/plan-run",
  "crash/kill",
  "crash/poison",
  "worker/node-run",
  "parts/demo",
  "cli/batch",
  "crash/orphans",
  "inputs/duplicates",
  "roadmap/storm",
  "crash/load",
  "simulation/simulation",
  "soak/soak",
  "crash/fencing",
  "inputs/rights",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return place === -1 ? LONGEST.length : place;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
