/** Runs a claimed batch: its lines in place of one call of an agent. */
import type { MakeRunner } from "../../worker/runner.ts";
import { runBatch } from "./batch-run.ts";

export const batch: MakeRunner = (tools) => ({
  fits: ({ claim }) => claim.name.isBatch === true,
  run: async (attempt, hooks) => {
    const { outcome, counts } = await runBatch(tools, attempt.claim, attempt.stop, hooks);
    attempt.counts = counts;
    return outcome;
  },
});
