/** Reads a node's settled record as what it means for the plan. */
import { decodeEnvelope } from "../../codec/envelope.ts";
import type { Checkpoint, Envelope } from "../../core/envelope.ts";
import type { ErrorRecord, ResultRecord } from "../../core/task.ts";
import type { SettledRun } from "../../roadmap/follow-up.ts";

export interface ReadRun {
  run: SettledRun;
  summary: string;
  checkpoint: Checkpoint | undefined;
  outputs: Record<string, unknown>;
}

/** The worker has checked the envelope; a record that others wrote may hold anything, and then it says nothing. */
export function readRun(record: ResultRecord | ErrorRecord): ReadRun {
  const said = envelopeOf(record);
  const summary = said?.summary ?? "";
  const outputs = said?.outputs ?? {};
  if (record.status === "failed") {
    const { kind, error } = record;
    return { run: { ended: "failed", kind, error }, summary, checkpoint: undefined, outputs };
  }
  const next = said?.next;
  if (record.verdict !== "checkpoint")
    return { run: { ended: "success", next }, summary, checkpoint: undefined, outputs };
  const checkpoint = said?.checkpoint ?? { question: "(no question)", context: "", options: [] };
  return {
    run: { ended: "checkpoint", next, question: checkpoint.question },
    summary,
    checkpoint,
    outputs,
  };
}

function envelopeOf(record: ResultRecord | ErrorRecord): Envelope | undefined {
  const { output } = record;
  if (output === undefined) return undefined;
  return decodeEnvelope(output, { missingStatus: "success" }).envelope;
}
