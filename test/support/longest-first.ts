/** Starts the files that take longest first, so that none of them is what everybody waits for in the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Longest first, as they were on two processors. What is not here comes after them, largest first. */
const LONGEST = [
  "crash/every-step",
  "roadmap/plan-run",
  "supervisor/control/commands",
  "crash/chaos",
  "inputs/state-files",
  "roadmap/rubbish",
  "crash/poison",
  "simulation/simulation",
  "crash/supervisor-faults",
  "crash/worker-faults",
  "crash/kill",
  "removal",
  "cli/batch",
  "parts/demo",
  "crash/rights",
  "worker/node-run",
  "codec/yaml",
  "cli/what-run-says",
  "cli/enqueue",
  "roadmap/paused-launch",
  "crash/burst",
  "inputs/duplicates",
  "soak/soak",
  "crash/orphans",
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
