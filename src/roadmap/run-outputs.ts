/** What every run of a node leaves in kv, whatever came of it. Idempotent: worker and supervisor both write it. */
import { OUTPUT_KEYS } from "../core/kv.ts";
import type { KvStore } from "./kv.ts";

export interface RunOutputs {
  node: string;
  /** Name of the directory under `runs/`; null when the run left none (its worker died). */
  run: string | null;
  lease: string;
  /** From 1. */
  attempt: number;
  agent: string;
  status: "success" | "fail" | "checkpoint";
  summary: string;
  /** Why it did not succeed: what `err.summary` says when the summary is empty. */
  error: string;
  /** Absolute paths. */
  stdoutPath: string;
  resultPath: string;
  /** The node's own values from its envelope. */
  outputs?: Readonly<Record<string, unknown>>;
}

/**
 * One replacement of the node's file. A success removes `err.summary`.
 * @returns false when all of it was there already
 * @throws ErrLeaseLost when a newer run has written; ErrInvalidKv; a system error
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
