/** Judges a phase of a node by the program's exit and its reported result. Pure. */
import { decodeEnvelope } from "../../../codec/envelope.ts";
import { type Envelope, errorOf, newEnvelope } from "../../../core/envelope.ts";
import { isObject } from "../../../core/json-object.ts";
import { type AttemptOutcome, failed } from "../../../core/outcome.ts";
import type { FailureKind } from "../../../core/task.ts";

/** Where a run reports its result. */
export type Said =
  /** A program: its reported results, not checked yet, the last one first. `isRequired`: it must report one. */
  | { by: "program"; results: readonly Record<string, unknown>[]; isRequired: boolean }
  /** A module: the result is the `output` of its outcome. */
  | { by: "module" };

export interface PhaseVerdict {
  outcome: AttemptOutcome;
  envelope: Envelope;
}

/** @param outcome the agent's outcome of the run, which does not consider the envelope */
export function judgePhase(outcome: AttemptOutcome, said: Said): PhaseVerdict {
  if (outcome.kind === "released" || outcome.kind === "deferred")
    return { outcome, envelope: newEnvelope("fail", "") };
  const results = said.by === "program" ? said.results : resultsOfModule(outcome);
  const isRequired = said.by === "program" && said.isRequired;
  const options = isRequired ? {} : ({ missingStatus: "success" } as const);
  const decoded = results.map((one) => decodeEnvelope(one, options));
  const valid = decoded.find(({ envelope }) => envelope !== undefined)?.envelope;
  // A program that exits with 0 but reports a failure is judged by its report below.
  if (outcome.kind === "failed" && outcome.code !== "ErrReportedFailure") {
    const envelope: Envelope = { ...(valid ?? newEnvelope("fail", "")), status: "fail" };
    return { outcome: { ...outcome, output: envelope }, envelope };
  }
  const exitCode = outcome.exitCode;
  if (valid !== undefined) return judgeEnvelope(valid, exitCode);
  const problems = decoded[0]?.problems;
  if (problems !== undefined)
    return fail(
      "invalid_result",
      "ErrInvalidResult",
      `its result cannot be used: ${problems.join("; ")}`,
      exitCode,
    );
  if (isRequired)
    return fail(
      "no_result",
      "ErrNoResult",
      'it ended without a result: print <result>{"status": "success", "summary": "…"}</result> at the end, or set `result: optional` on the agent in config.yaml',
      exitCode,
    );
  const output = outcome.kind === "completed" ? outcome.output : undefined;
  const envelope: Envelope = {
    ...newEnvelope("success", outcome.kind === "completed" ? outcome.verdictReason : ""),
    ...(output === undefined || output === null ? {} : { output }),
  };
  return judgeEnvelope(envelope, exitCode);
}

function judgeEnvelope(envelope: Envelope, exitCode: number | null): PhaseVerdict {
  const { status, summary, checkpoint, extra } = envelope;
  if (status === "fail") {
    const message = errorOf(envelope) || "it reported a failure and did not say why";
    return fail("reported", "ErrReportedFailure", message, exitCode, envelope);
  }
  const isAsking = status === "checkpoint";
  const own = extra?.["verdict"];
  const outcome: AttemptOutcome = {
    kind: "completed",
    output: envelope,
    verdict: !isAsking && typeof own === "string" ? own : status,
    verdictReason: (isAsking ? checkpoint?.question : undefined) ?? summary,
    exitCode,
  };
  return { envelope, outcome };
}

function fail(
  failure: FailureKind,
  code: string,
  message: string,
  exitCode: number | null,
  envelope: Envelope = newEnvelope("fail", ""),
): PhaseVerdict {
  return {
    envelope,
    outcome: failed(failure, code, message, { exitCode, output: envelope }),
  };
}

/** A returned object whose `status` is a text is an envelope. Every other result is a plain value. */
function resultsOfModule(outcome: AttemptOutcome): Record<string, unknown>[] {
  if (outcome.kind !== "completed") return [];
  const { output } = outcome;
  return isObject(output) && typeof output["status"] === "string" ? [output] : [];
}
