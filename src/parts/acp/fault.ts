/** Why a turn of an agent of the Agent Client Protocol ended badly: by the code of its error, else by its words. Pure. */
import type { Fact, TurnFault } from "../../agents/stream/facts.ts";
import { asText, type JsonMembers, textOf } from "../../agents/stream/json-values.ts";

/** Codes of the protocol. */
const AUTH_REQUIRED = -32000;
const NOT_FOUND = -32002;

/** The order matters: a message about a limit often names a status, a key and a model, too. */
const WORDS: readonly (readonly [TurnFault, RegExp])[] = [
  ["context", /context[ _](?:length|window)|prompt is too long|maximum context/i],
  ["config", /billing|insufficient[ _](?:quota|credit|balance)|out of credits/i],
  ["limit", /\b429\b|rate.?limit|usage limit|quota|too many requests|resource_exhausted/i],
  ["auth", /\b40[13]\b|unauthorized|not logged in|log in|sign in|login|api.?key|authenticat/i],
  [
    "overload",
    /\b5\d\d\b|overloaded|at capacity|unavailable|timed? ?out|ECONN|ENOTFOUND|socket (?:hang up|connection)|cannot connect|connection error|network|fetch failed|(?:^|: )terminated$/i,
  ],
  ["config", /\bmodel\b.*(?:not found|not exist|not supported|unknown|invalid)/i],
  ["request", /\b400\b|invalid_request|bad request/i],
];
/** The reason stands at the beginning of a message, so no more than this is searched (characters). */
const MESSAGE_MAX = 4000;

/** Undefined when the words name no fault. */
export function faultOfWords(message: string): TurnFault | undefined {
  const text = message.slice(0, MESSAGE_MAX);
  return WORDS.find(([, words]) => words.test(text))?.[0];
}

/** Copilot CLI tells the errors of its service as a text, after notices, and then ends its turn well. Undefined when the text is no such one. */
export function faultOfSaid(text: string): TurnFault | undefined {
  const [, error] = /^(?:Info: .*)?(Error: .*)$/s.exec(text) ?? [];
  return error === undefined ? undefined : faultOfWords(error);
}

export function faultOfError(error: JsonMembers): TurnFault {
  const { code } = error;
  if (code === AUTH_REQUIRED) return "auth";
  // Some programs give the status of the service as the code.
  const status = typeof code === "number" && code >= 400 && code < 600 ? `${code} ` : "";
  return faultOfWords(status + messageOfError(error)) ?? "other";
}

/** Whether the session to resume does not exist. Every refusal but that of the account means so: the work goes on in a new session then. */
export function isLost(error: JsonMembers): boolean {
  if (error["code"] === NOT_FOUND) return true;
  return !["auth", "limit", "overload"].includes(faultOfError(error));
}

export function messageOfError(error: JsonMembers): string {
  const message = textOf(error["message"]);
  const { data } = error;
  const more = textOf((data as JsonMembers | undefined)?.["details"]) || asText(data);
  if (message === "") return more || "it does not say why";
  return more === "" || more === message ? message : `${message}: ${more}`;
}

export function endTurn(fault: TurnFault | undefined, text: string): Fact {
  return { fact: "turn_ended", end: { fault, text, answers: undefined, denied: [] } };
}
