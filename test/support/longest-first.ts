/** Starts the files that take longest first, so that none of them is what everybody waits for in the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Longest first, as they were on two processors. What is not here comes after them, largest first. */
const LONGEST = [
  "crash/every-step",
  "simulation/simulation",
  "removal",
  "landing/kills",
  "worktrees/kills",
  "landing/ten",
  "mail/loops",
  "landing/review-by",
  "crash/chaos",
  "mail/killed",
  "mail/spawn-killed",
  "inputs/state-files",
  "mail/wake",
  "simulation/mail",
  "mail/three-agents",
  "cli/other-tools",
  "landing/land",
  "budget/budget-runs",
  "parts/demo-night",
  "agents/runs/quota",
  "worktrees/any-git",
  "crash/poison",
  "crash/worker-faults",
  "crash/burst",
  "soak/soak",
  "supervisor/control/commands",
  "cli/batch",
  "notify/notify",
  "list/list",
  "worker/node-run",
  "mail/verbs",
  "cli/enqueue",
  "cli/what-run-says",
  "cli/wait",
  "cli/until",
  "worktrees/runs",
  "cli/upkeep",
  "inputs/execution",
  "view/overview",
  "test/readme",
  "plan/edit",
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
