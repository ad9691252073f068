/** Turns the record of a machine into the end of a run in a message, and that end into an outcome at the origin. Pure. */
import { compact } from "../../../core/compact.ts";
import { type AttemptOutcome, failed } from "../../../core/outcome.ts";
import type { RunUsage } from "../../../core/run-usage.ts";
import type { ErrorRecord, FailureKind, ResultRecord } from "../../../core/task.ts";
import type { LandingView } from "../../../view/landing.ts";
import type { End, EndUsage, RunCost, RunWork } from "../protocol/messages.ts";

/** After these failures and exit codes another run cannot help. Machines say it of each failure, but those of earlier versions do not. */
const FINAL_KINDS: ReadonlySet<FailureKind> = new Set(["cancelled", "invalid", "landing"]);
const FINAL_EXITS: ReadonlySet<number | null> = new Set([64, 65, 78]);

/**
 * @param costs what coding agents have used in this run
 * @param landing the ended landing of its work; undefined when there is none
 */
export function endOfRecord(
  record: ResultRecord | ErrorRecord,
  costs: readonly RunCost[] = [],
  landing?: LandingView,
): End {
  const spent = costs.length === 0 ? {} : { costs };
  if (record.status === "completed") {
    const { output, verdict, verdict_reason, exit_code, duration_ms } = record;
    if (landing?.state === "failed")
      return {
        status: "failed",
        usage: { duration_ms, ...runUsageOf(record) },
        ...spent,
        kind: "landing",
        code: "ErrLanding",
        error: `its work did not land: ${landing.why} (${landing.id})`,
        exit_code: null,
        signal: null,
        output: output ?? null,
      };
    const work = workOf(record, landing);
    return {
      status: "completed",
      usage: { duration_ms, ...runUsageOf(record) },
      ...spent,
      output: output ?? null,
      verdict,
      verdict_reason,
      exit_code,
      ...(work === undefined ? {} : { work }),
    };
  }
  const { kind, code, error, exit_code, signal, output, can_retry: canRetry } = record;
  return {
    status: "failed",
    usage: runUsageOf(record),
    ...spent,
    kind,
    code,
    error,
    exit_code,
    signal,
    ...(canRetry === undefined ? {} : { can_retry: canRetry }),
    ...(output === undefined ? {} : { output }),
  };
}

function workOf(
  { landing: is, branch, base, target, diffstat }: ResultRecord,
  landing: LandingView | undefined,
): RunWork | undefined {
  if (is === undefined || branch === undefined || base === undefined) return undefined;
  if (target === undefined || diffstat === undefined) return undefined;
  // If no trace of the landing is left, it is not known whether the work has landed.
  const now = landing?.state === "landed" ? "landed" : is === "nothing" ? "nothing" : "branch";
  return { landing: now, branch, base, target, diffstat };
}

/** The resources that the run has used. */
export function usageOf(end: End): EndUsage {
  return end.status === "refused" ? {} : (end.usage ?? {});
}

/** What coding agents have used in the run. */
export function costsOfEnd(end: End): readonly RunCost[] {
  return end.status === "refused" ? [] : (end.costs ?? []);
}

function runUsageOf({ cpu_ms, peak_memory_bytes, denied }: RunUsage): RunUsage {
  return compact({ cpu_ms, peak_memory_bytes, denied });
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
        canRetry: end.can_retry ?? (!FINAL_KINDS.has(end.kind) && !FINAL_EXITS.has(end.exit_code)),
        ...(end.output === undefined ? {} : { output: end.output }),
      });
  }
}
