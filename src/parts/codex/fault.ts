/**
 * Why a turn of Codex ended badly, from its own message. Pure. The program gives a status or a code if it can; otherwise only the
 * text of the message is left. A time in that text is never used, because it has no zone.
 */
import type { Fact, TurnFault } from "../../agents/stream/facts.ts";
import {
  isObject,
  type JsonMembers,
  membersAt,
  numberOf,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";

/** "unexpected status 401 Unauthorized", "last status: 429 Too Many Requests". */
const STATUS = /\bstatus:? (\d{3})\b/i;

/** The message of a request that the service refused as wrong (400) is the JSON of its answer. */
const REFUSED = /^\{"(error|detail)"/;

/** The account must pay. */
const BILLING = /quota exceeded|billing|insufficient_quota|out of credits/i;
const WRONG_MODEL =
  /\bmodel\b.*(does not exist|not supported|not found)|model_not_found|model provider .* not found|no longer supported/i;

/** The conversation is too long for the model. */
const CONTEXT = /ran out of room in the model's context|context_length_exceeded|context window/i;

/** The order matters: a message about a usage limit offers to buy credits, but is not about billing. */
const WORDS: readonly (readonly [TurnFault, RegExp])[] = [
  ["context", CONTEXT],
  ["lost_session", /no rollout found|thread not found|no saved session/i],
  ["limit", /usage limit|rate limit|too many requests/i],
  ["config", BILLING],
  ["overload", /high demand|at capacity|overloaded|temporar(il)?y/i],
  [
    "overload",
    /stream disconnected|network error|connection (failed|refused|reset|closed)|error sending request|timed? ?out/i,
  ],
  ["config", WRONG_MODEL],
  ["request", /invalid_request_error|bad request/i],
  ["auth", /unauthorized|not logged in|log in again|sign in again|refresh token|api key/i],
];

/** Faults by codes of the app-server (`codexErrorInfo`). */
const CODES: Readonly<Record<string, TurnFault>> = {
  usageLimitExceeded: "limit",
  rateLimitExceeded: "limit",
  serverOverloaded: "overload",
  internalServerError: "overload",
  flexUnavailable: "overload",
  policyCapacityUnavailable: "overload",
  unauthorized: "auth",
  modelNotFound: "config",
  badRequest: "request",
  contextWindowExceeded: "context",
};

/** The reason stands at the beginning of a message, so no more than this is searched (characters). */
const MESSAGE_MAX = 4000;

export function faultOfMessage(fullMessage: string): TurnFault {
  const message = fullMessage.slice(0, MESSAGE_MAX);
  const status = statusOfMessage(message);
  // The words of a refusal may be about anything, such as an image that the service could not load in time.
  if (status === 400 || REFUSED.test(message)) return faultOfRefusal(message);
  const fault = status === null ? undefined : faultOfStatus(status);
  if (fault !== undefined) return fault;
  return WORDS.find(([, words]) => words.test(message))?.[0] ?? "other";
}

function faultOfRefusal(message: string): TurnFault {
  if (CONTEXT.test(message)) return "context";
  return BILLING.test(message) || WRONG_MODEL.test(message) ? "config" : "request";
}

/** Null when it names no HTTP status. */
export function statusOfMessage(message: string): number | null {
  const found = STATUS.exec(message);
  return found === null ? null : Number(found[1]);
}

/** The fault of an error of the app-server: `{message, codexErrorInfo}`. */
export function faultOfTurnError(message: string, info: unknown): TurnFault {
  // An account that must pay has the code of a usage limit, but waiting does not help.
  const said = faultOfMessage(message);
  if (said === "config" || said === "context") return said;
  const status = statusOfErrorInfo(info);
  const fault = status === null ? undefined : faultOfStatus(status);
  if (fault !== undefined) return fault;
  const code = typeof info === "string" && Object.hasOwn(CODES, info) ? CODES[info] : undefined;
  return code ?? faultOfMessage(message);
}

/** The HTTP status in a `codexErrorInfo` such as `{responseTooManyFailedAttempts: {httpStatusCode}}`. */
export function statusOfErrorInfo(info: unknown): number | null {
  if (!isObject(info)) return null;
  for (const detail of Object.values(info)) {
    const status = isObject(detail) ? numberOf(detail["httpStatusCode"]) : null;
    if (status !== null) return status;
  }
  return null;
}

function faultOfStatus(status: number): TurnFault | undefined {
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "limit";
  if (status === 408 || status === 409 || status >= 500) return "overload";
  if (status === 402 || status === 404) return "config";
  return status >= 400 ? "request" : undefined;
}

/** What the program prints to stderr when it cannot begin. */
const COMPLAINT = /^(?:error: .*|error loading .*|not inside a trusted directory.*)$/im;
/** Says that arguments, settings or the folder are wrong. "Error:" with a capital E may mean anything, such as a lost session. */
const WRONG_START = /^(?:error:|Error loading|Not inside)/;

/**
 * The end of a run that its stream does not report, from the end of stderr. Only for a run that began no turn and ended by itself.
 * @returns no facts when stderr does not say why
 */
export function readLastWords(lastWords: string): Fact[] {
  const text = COMPLAINT.exec(lastWords)?.[0];
  if (text === undefined) return [];
  return [endTurn(WRONG_START.test(text) ? "config" : faultOfMessage(text), text)];
}

export function endTurn(
  fault: TurnFault | undefined,
  text: string,
  answers?: readonly string[],
): Fact {
  return { fact: "turn_ended", end: { fault, text: plainMessage(text), answers, denied: [] } };
}

/** The message of an `{error: {message}}`. */
export function messageOfError(error: JsonMembers): string {
  const { message } = error;
  return typeof message === "string" && message !== "" ? message : "it does not say why";
}

/** The text for people from a message that is the JSON of an answer. */
export function plainMessage(message: string): string {
  const error = membersAt(readObjectLine(message), "error");
  return textOf(error["message"]) || textOf(error["detail"]) || message;
}
