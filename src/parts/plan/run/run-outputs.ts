/** Writes the values that every run of a node leaves in kv, even a failed one. Worker and supervisor write the same values. */
import { join } from "node:path";
import { decodeEnvelope } from "../../../codec/envelope.ts";
import { type Envelope, errorOf, newEnvelope } from "../../../core/envelope.ts";
import { OUTPUT_KEYS } from "../../../core/kv.ts";
import { runOfLease } from "../../../core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../core/task.ts";
import type { KvStore } from "../../../kv/store.ts";

type RecordFacts = Pick<
  ResultRecord | ErrorRecord,
  "task_id" | "status" | "lease" | "attempts" | "agent_id"
>;

/**
 * Writes all values in one replacement of the node's file. A success removes `err.summary`.
 * @param error why the run did not succeed, if neither the summary nor the errors of its envelope say so
 * @param runsDir absolute path of `runs/`
 * @returns false if kv had all values already
 * @throws ErrLeaseLost if a newer run has written; ErrInvalidKv; a system error
 */
export function writeRunOutputs(
  kv: KvStore,
  { task_id: node, status, lease, attempts: attempt, agent_id: by }: RecordFacts,
  envelope: Envelope,
  error: string,
  runsDir: string,
): Promise<boolean> {
  const run = runOfLease(node, lease);
  const { summary } = envelope;
  const isSuccess = status !== "failed" && envelope.status === "success";
  const puts = {
    ...envelope.outputs,
    [OUTPUT_KEYS.summary]: summary,
    [OUTPUT_KEYS.stdoutPath]: join(runsDir, run, "stdout.log"),
    [OUTPUT_KEYS.resultPath]: join(runsDir, run, "result.json"),
    ...(isSuccess ? {} : { [OUTPUT_KEYS.error]: summary || errorOf(envelope) || error }),
  };
  const removes = isSuccess ? [OUTPUT_KEYS.error] : [];
  return kv.change(node, { puts, removes }, { run, lease, attempt, by });
}

/** The envelope of a settled record. A record of another program may have none: then its status is turned into an envelope. */
export function envelopeOfRecord(record: ResultRecord | ErrorRecord): Envelope {
  const { envelope } = decodeEnvelope(record.output);
  if (envelope !== undefined) return envelope;
  return record.status === "completed"
    ? newEnvelope("success", record.verdict_reason)
    : newEnvelope("fail", "");
}

/** Writes the outputs of a settled record: the same values that its worker wrote, or would have written. */
export function writeOutputsOfRecord(
  kv: KvStore,
  record: ResultRecord | ErrorRecord,
  runsDir: string,
): Promise<boolean> {
  const error = record.status === "failed" ? record.error : record.verdict_reason;
  return writeRunOutputs(kv, record, envelopeOfRecord(record), error, runsDir);
}
