/** What the refusal of a service means, and the windows of the quota in the headers of any answer. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import type { MeterNote, Refusal } from "../../agents/meter.ts";
import {
  isObject,
  type JsonMembers,
  listOf,
  numberOf,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readEpochMs } from "../../agents/stream/read-values.ts";

/** How much of a message is kept (characters). */
const TEXT_MAX = 300;

/** The status of errors that come within an answer, by the name that a service has for them. */
const STATUS_OF: Readonly<Record<string, number>> = {
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  usage_limit_reached: 429,
  insufficient_quota: 429,
  RESOURCE_EXHAUSTED: 429,
  overloaded_error: 529,
  server_is_overloaded: 529,
  UNAVAILABLE: 503,
  api_error: 500,
  server_error: 500,
  INTERNAL: 500,
  authentication_error: 401,
};

/** What an error in the body says. */
export interface ErrorBody {
  type: string;
  text: string;
  members: JsonMembers;
}

/** Undefined for an answer, and for a refusal that is about the request itself, such as 400. @param status of the answer */
export function readRefusal(
  status: number,
  headers: IncomingHttpHeaders,
  error: ErrorBody | undefined,
  nowMs: number,
): Refusal | undefined {
  const code = status < 400 && error !== undefined ? (STATUS_OF[error.type] ?? 0) : status;
  const fault = faultOf(code, error);
  if (fault === undefined) return undefined;
  const told = error?.text ?? "";
  return {
    fault,
    status: code,
    resetsAtMs: fault === "limit" ? resetOf(headers, error, nowMs) : null,
    text: `HTTP ${code}${told === "" ? "" : `: ${told}`}`.slice(0, TEXT_MAX),
  };
}

function faultOf(status: number, error: ErrorBody | undefined): Refusal["fault"] | undefined {
  // A wait does not help an account that must pay.
  const mustPay = [error?.type, error?.members["code"]].includes("insufficient_quota");
  if (status === 402 || (status === 429 && mustPay)) return "config";
  if (status === 429) return "limit";
  if (status === 401 || status === 403) return "auth";
  return status >= 500 ? "overload" : undefined;
}

/** When the service takes requests again (epoch ms); null when it does not say so as a number. */
function resetOf(
  headers: IncomingHttpHeaders,
  error: ErrorBody | undefined,
  nowMs: number,
): number | null {
  const members = error?.members ?? {};
  const inSeconds = numberOf(members["resets_in_seconds"]) ?? retryDelayOf(members);
  const waitMs = numberIn(headers, "retry-after-ms");
  const waitS = numberIn(headers, "retry-after");
  const date = Date.parse(String(headers["retry-after"] ?? ""));
  const candidates = [
    readEpochMs(members["resets_at"]),
    isRefused(headers) ? readEpochMs(numberIn(headers, `${ANTHROPIC}-reset`)) : null,
    inSeconds === null ? null : nowMs + inSeconds * 1000,
    waitMs === null ? null : nowMs + waitMs,
    waitS === null ? null : nowMs + waitS * 1000,
    Number.isNaN(date) ? null : date,
  ];
  return candidates.find((atMs) => atMs !== null && atMs > nowMs) ?? null;
}

const ANTHROPIC = "anthropic-ratelimit-unified";
const isRefused = (headers: IncomingHttpHeaders): boolean =>
  headers[`${ANTHROPIC}-status`] === "rejected";

/** Gemini writes `{"@type": "…RetryInfo", "retryDelay": "27s"}`. In seconds. */
function retryDelayOf(error: JsonMembers): number | null {
  for (const detail of listOf(error["details"])) {
    const [, seconds] =
      /^(\d+(?:\.\d+)?)s$/.exec(isObject(detail) ? textOf(detail["retryDelay"]) : "") ?? [];
    if (seconds !== undefined) return Number(seconds);
  }
  return null;
}

function numberIn(headers: IncomingHttpHeaders, name: string): number | null {
  const text = headers[name];
  const isNumber = typeof text === "string" && /^\d{1,15}(?:\.\d+)?$/.test(text.trim());
  return isNumber ? Number(text) : null;
}

type Window = Extract<MeterNote, { note: "window" }>;

/** How full the windows of a subscription are. */
export function readWindows(headers: IncomingHttpHeaders): Window[] {
  const window = (name: string, usedPct: number | null, reset: number | null): Window[] => {
    const resetsAtMs = readEpochMs(reset);
    if (usedPct === null || resetsAtMs === null) return [];
    return [{ note: "window", window: name, usedPct, resetsAtMs }];
  };
  const part = (name: string): number | null => {
    const used = numberIn(headers, `${ANTHROPIC}-${name}-utilization`);
    return used === null ? null : used * 100;
  };
  const read = (name: string): number | null => numberIn(headers, name);
  return [
    ...window("five_hour", part("5h"), read(`${ANTHROPIC}-5h-reset`)),
    ...window("seven_day", part("7d"), read(`${ANTHROPIC}-7d-reset`)),
    ...["primary", "secondary"].flatMap((place) => {
      const codex = (what: string): number | null => read(`x-codex-${place}-${what}`);
      const name = lengthOf(codex("window-minutes")) ?? place;
      return window(name, codex("used-percent"), codex("reset-at"));
    }),
  ];
}

/** The name that codex itself gives a window of this length. */
function lengthOf(minutes: number | null): string | undefined {
  if (minutes === null) return undefined;
  return minutes % 1440 === 0 ? `${minutes / 1440}d` : `${minutes / 60}h`;
}
