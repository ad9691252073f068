/** Lets a worker run a claimed batch line by line instead of with one call of an agent. */
import type { MakeRunner } from "../../worker/runner.ts";
import { runBatch } from "./batch-run.ts";

export const batch: MakeRunner = (tools) => ({
  fits: ({ claim }) => claim.name.isBatch === true,
  run: async (attempt, hooks) => {
    const { outcome, counts } = await runBatch(tools, attempt, hooks);
    attempt.counts = counts;
    return outcome;
  },
});
