/** Reads tokens and quota windows of Codex: in snake_case from its rollout file, in camelCase from the app-server. Pure. */
import type { Fact } from "../../agents/stream/facts.ts";
import {
  isObject,
  type JsonMembers,
  membersAt,
  numberOf,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readCount, readEpochMs } from "../../agents/stream/read-values.ts";

/** A sum over the thread. The program gives no price. @param of see `Fact` */
export function readUsage(sum: JsonMembers, of: "session" | "kept" = "session"): Fact[] {
  const inputTokens = readCount(pick(sum, "input_tokens", "inputTokens"));
  const outputTokens = readCount(pick(sum, "output_tokens", "outputTokens"));
  if (inputTokens === null && outputTokens === null) return [];
  const usage = {
    inputTokens: inputTokens ?? 0,
    cachedInputTokens: readCount(pick(sum, "cached_input_tokens", "cachedInputTokens")) ?? 0,
    outputTokens: outputTokens ?? 0,
    costUsdMicro: null,
  };
  return [{ fact: "usage", usage, of }];
}

/** The windows of a `rate_limits` (rollout) or `rateLimits` (app-server). A window that is full refuses the next request. */
export function readRateLimits(limits: JsonMembers): Fact[] {
  const facts: Fact[] = [];
  const id = textOf(limits["limit_id"] ?? limits["limitId"]);
  for (const place of ["primary", "secondary"]) {
    if (!isObject(limits[place])) continue;
    const window = membersAt(limits, place);
    const usedPct = pick(window, "used_percent", "usedPercent");
    const resetsAtMs = readEpochMs(pick(window, "resets_at", "resetsAt"));
    const minutes = pick(window, "window_minutes", "windowDurationMins");
    const name = minutes === null ? place : lengthOf(minutes);
    facts.push({
      fact: "quota",
      isRejected: usedPct !== null && usedPct >= 100,
      resetsAtMs,
      window: id === "" || id === "codex" ? name : `${id} ${name}`,
      usedPct,
    });
  }
  const reached = textOf(limits["rate_limit_reached_type"] ?? limits["rateLimitReachedType"]);
  if (reached !== "")
    facts.push({
      fact: "quota",
      isRejected: true,
      resetsAtMs: null,
      window: reached,
      usedPct: null,
    });
  return facts;
}

function pick(from: JsonMembers, snake: string, camel: string): number | null {
  return numberOf(from[snake] ?? from[camel]);
}

function lengthOf(minutes: number): string {
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}min`;
}
