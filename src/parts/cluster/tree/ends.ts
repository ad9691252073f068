/** How a run has ended: from the record of a machine to the outcome of a run at the origin. Pure. */
import { type AttemptOutcome, failed } from "../../../core/outcome.ts";
import type { ErrorRecord, FailureKind, ResultRecord } from "../../../core/task.ts";
import type { End } from "../protocol/messages.ts";

/** Another run cannot help, as for a program of the origin that exits with one of these: see `outcomeOfExit`. */
const FINAL_KINDS: ReadonlySet<FailureKind> = new Set(["cancelled", "invalid"]);
const FINAL_EXITS: ReadonlySet<number | null> = new Set([64, 65, 78]);

export function endOfRecord(record: ResultRecord | ErrorRecord): End {
  if (record.status === "completed") {
    const { output, verdict, verdict_reason, exit_code } = record;
    return { status: "completed", output: output ?? null, verdict, verdict_reason, exit_code };
  }
  const { kind, code, error, exit_code, signal, output } = record;
  return {
    status: "failed",
    kind,
    code,
    error,
    exit_code,
    signal,
    ...(output === undefined ? {} : { output }),
  };
}

export function outcomeOf(end: End, machine: string): AttemptOutcome {
  switch (end.status) {
    case "completed":
      return {
        kind: "completed",
        output: end.output,
        verdict: end.verdict,
        verdictReason: end.verdict_reason,
        exitCode: end.exit_code,
      };
    case "refused":
      return failed("invalid", "ErrRefused", `${machine} refuses it: ${end.reason}`, {
        canRetry: false,
      });
    case "failed":
      return failed(end.kind, end.code, end.error, {
        exitCode: end.exit_code,
        signal: end.signal,
        canRetry: !FINAL_KINDS.has(end.kind) && !FINAL_EXITS.has(end.exit_code),
        ...(end.output === undefined ? {} : { output: end.output }),
      });
  }
}
