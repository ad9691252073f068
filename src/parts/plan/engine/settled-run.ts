/** Reads from a node's settled record what it means for the plan. */
import type { Checkpoint } from "../../../core/envelope.ts";
import type { SettledRecord } from "../../../mailbox/settled-record.ts";
import type { SettledRun } from "../rules/follow-up.ts";
import { inputNodesOf } from "../rules/node-task.ts";
import { envelopeOfRecord } from "../run/run-outputs.ts";

export interface ReadRun {
  run: SettledRun;
  /** Set when it ended with a question. */
  checkpoint: Checkpoint | undefined;
}

/** The worker has checked what the run said; a record that others wrote may hold anything, and then it says nothing. */
export function readRun(record: SettledRecord["record"]): ReadRun {
  if (record.status === "failed") {
    const { kind, error } = record;
    return { run: { ended: "failed", kind, error }, checkpoint: undefined };
  }
  const { next, checkpoint: asked } = envelopeOfRecord(record);
  if (record.verdict !== "checkpoint")
    return {
      run: { ended: "success", next, shown: inputNodesOf(record.task) },
      checkpoint: undefined,
    };
  const checkpoint = asked ?? { question: "(no question)", context: "", options: [] };
  return { run: { ended: "checkpoint", next, question: checkpoint.question }, checkpoint };
}
