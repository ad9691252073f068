/** How a run of a landing ends. */
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { LandingOrder } from "../../worker/landing-files.ts";
import { proofRefOf } from "./proof.ts";

export function success(
  order: LandingOrder,
  landing: "landed" | "nothing" | "handed_over",
  commit: string,
  reason: string,
): AttemptOutcome {
  const { task_id, branch, target, lease } = order;
  const proof = landing === "landed" ? { proof: proofRefOf(order) } : {};
  return {
    kind: "completed",
    output: { landing, task_id, branch, target, commit, lease, ...proof },
    verdict: "pass",
    verdictReason: reason,
    exitCode: null,
  };
}

/** Fails without a retry, because another run cannot help. */
export function forPerson(message: string, lastWords = ""): AttemptOutcome {
  const text = lastWords === "" ? message : `${message}\n\n${lastWords}`;
  return failed("landing", "ErrLanding", text, { canRetry: false });
}
