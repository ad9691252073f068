/** Why a turn of Claude Code ended badly, from numbers and names in its stream. A `subtype` of "success" may still be an error. */
import type { TurnFault } from "../../agents/stream/facts.ts";
import { type Json, numberAt, textAt, textsAt } from "./fields.ts";

/** Reasons for the end of a turn that count as an error, even if the result says that it is no error. */
const BAD_ENDS: ReadonlySet<string> = new Set([
  "api_error",
  "blocking_limit",
  "budget_exhausted",
  "image_error",
  "malformed_tool_use_exhausted",
  "max_turns",
  "model_error",
  "prompt_too_long",
  "rapid_refill_breaker",
  "structured_output_retry_exhausted",
  "tool_deferred_unavailable",
  "turn_setup_failed",
]);

/** Faults by the program's own names of request errors. */
const OF_ERROR: ReadonlyMap<string, TurnFault> = new Map([
  ["account_on_hold", "config"],
  ["authentication_failed", "auth"],
  ["billing_error", "config"],
  ["cloud_credential_error", "auth"],
  ["invalid_request", "request"],
  ["model_not_found", "config"],
  ["oauth_org_not_allowed", "config"],
  ["overloaded", "overload"],
  ["rate_limit", "limit"],
  ["server_error", "overload"],
  ["verification_required", "config"],
]);

/**
 * @param result a line of type "result"
 * @param error the error that the last message of the turn names
 */
export function faultOfResult(result: Json, error: string | undefined): TurnFault | undefined {
  const reason = textAt(result, "terminal_reason") ?? "";
  if (reason.startsWith("aborted_")) return "interrupted";
  // Older versions call some ends an error by the subtype only.
  const isBad = textAt(result, "subtype")?.startsWith("error") === true || BAD_ENDS.has(reason);
  if (result["is_error"] === false && !isBad) return undefined;
  if ((textsAt(result, "errors") ?? []).some(isLostSession)) return "lost_session";
  if (reason === "prompt_too_long") return "context";
  // Neither the account nor the settings are at fault.
  if (reason !== "" && reason !== "api_error") return "other";
  return faultOfRequest(result, error);
}

function faultOfRequest(result: Json, error: string | undefined): TurnFault {
  if (textAt(result, "api_error") === "usage_limit_reached") return "limit";
  if (textAt(result, "api_error_type") === "billing_error") return "config";
  const status = numberAt(result, "api_error_status");
  // The answer did not come from the service but from something on the way to it, such as a proxy.
  const hasNoAnswer = textAt(result, "terminal_reason") === "api_error" && error === "unknown";
  if (hasNoAnswer && status === undefined) return "overload";
  // The program's name of the error is more exact than the status: an empty account has status 400 or 403.
  return OF_ERROR.get(error ?? "") ?? faultOfStatus(status);
}

function faultOfStatus(status: number | undefined): TurnFault {
  if (status === undefined) return "other";
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "limit";
  if (status === 402 || status === 404) return "config";
  if (status === 400 || status === 413) return "request";
  return status >= 500 ? "overload" : "other";
}

/**
 * The fault of a run whose stream says nothing, from the end of its stderr. Only messages of the command line count; other text is
 * no evidence.
 */
export function faultOfLastWords(lastWords: string): TurnFault | undefined {
  if (isLostSession(lastWords)) return "lost_session";
  return /^error: (?:unknown option|option '|missing required|too many arguments)/m.test(lastWords)
    ? "config"
    : undefined;
}

function isLostSession(text: string): boolean {
  return text.includes("No conversation found");
}
