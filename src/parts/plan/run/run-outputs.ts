/** Writes the values that every run of a node leaves in kv, even a failed one. Worker and supervisor write the same values. */
import { join } from "node:path";
import { decodeEnvelope } from "../../../codec/envelope.ts";
import { type Envelope, errorOf, newEnvelope } from "../../../core/envelope.ts";
import { OUTPUT_KEYS } from "../../../core/kv.ts";
import { runOfLease } from "../../../core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../core/task.ts";
import type { KvStore } from "../../../kv/store.ts";

export interface RunOutputs {
  node: string;
  /** Name of the directory under `runs/`. */
  run: string;
  lease: string;
  /** From 1. */
  attempt: number;
  agent: string;
  status: "success" | "fail" | "checkpoint";
  summary: string;
  /** Why the run did not succeed; used for `err.summary` if the summary is empty. */
  error: string;
  /** Absolute paths. */
  stdoutPath: string;
  resultPath: string;
  /** The values that the run's envelope leaves for later nodes. */
  outputs?: Readonly<Record<string, unknown>>;
}

type RecordFacts = Pick<
  ResultRecord | ErrorRecord,
  "task_id" | "status" | "lease" | "attempts" | "agent_id"
>;

/**
 * Writes all values in one replacement of the node's file. A success removes `err.summary`.
 * @returns false if kv had all values already
 * @throws ErrLeaseLost if a newer run has written; ErrInvalidKv; a system error
 */
export function writeRunOutputs(kv: KvStore, o: RunOutputs): Promise<boolean> {
  const isSuccess = o.status === "success";
  return kv.change(
    o.node,
    {
      puts: {
        ...o.outputs,
        [OUTPUT_KEYS.summary]: o.summary,
        [OUTPUT_KEYS.stdoutPath]: o.stdoutPath,
        [OUTPUT_KEYS.resultPath]: o.resultPath,
        ...(isSuccess ? {} : { [OUTPUT_KEYS.error]: o.summary === "" ? o.error : o.summary }),
      },
      removes: isSuccess ? [OUTPUT_KEYS.error] : [],
    },
    { run: o.run, lease: o.lease, attempt: o.attempt, by: o.agent },
  );
}

/** @param runsDir absolute path of `runs/` */
export function outputsOf(
  record: RecordFacts,
  envelope: Envelope,
  error: string,
  runsDir: string,
): RunOutputs {
  const run = runOfLease(record.task_id, record.lease);
  return {
    node: record.task_id,
    run,
    lease: record.lease,
    attempt: record.attempts,
    agent: record.agent_id,
    status: record.status === "failed" ? "fail" : envelope.status,
    summary: envelope.summary,
    error: errorOf(envelope) || error,
    stdoutPath: join(runsDir, run, "stdout.log"),
    resultPath: join(runsDir, run, "result.json"),
    outputs: envelope.outputs,
  };
}

/** The envelope of a settled record. A record of another program may have none: then its status is turned into an envelope. */
export function envelopeOfRecord(record: ResultRecord | ErrorRecord): Envelope {
  const { envelope } = decodeEnvelope(record.output);
  if (envelope !== undefined) return envelope;
  return record.status === "completed"
    ? newEnvelope("success", record.verdict_reason)
    : newEnvelope("fail", "");
}

/** The outputs of a settled record: the same values that its worker wrote, or would have written. */
export function outputsOfRecord(record: ResultRecord | ErrorRecord, runsDir: string): RunOutputs {
  const error = record.status === "failed" ? record.error : record.verdict_reason;
  return outputsOf(record, envelopeOfRecord(record), error, runsDir);
}
