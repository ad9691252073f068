/** Windows of the account's quota, as Claude Code reports them with a subscription. */
import type { Fact } from "../../agents/stream/facts.ts";
import { readEpochMs } from "../../agents/stream/read-values.ts";
import { isObject } from "../../core/json-object.ts";
import { type Json, numberAt, objectAt, textAt } from "./fields.ts";

/** One fact for each window. An event that names no window or refuses nothing also gives one without a window. */
export function quotaOf(info: Json): Fact[] {
  const isRejected = textAt(info, "status") === "rejected";
  const named = textAt(info, "rateLimitType");
  const windows: Json = { ...objectAt(info, "unifiedWindows") };
  if (named !== undefined && !isObject(windows[named])) windows[named] = info;
  const facts: Fact[] = [];
  // A fact without a window is about the whole account. It comes first, because the facts of a window are more exact.
  const isBare = Object.keys(windows).length === 0;
  if (!isRejected || isBare) facts.push(quota(isBare ? info : {}, null, isRejected));
  for (const [name, window] of Object.entries(windows)) {
    if (!isObject(window)) continue;
    // A full window does not stop an account that may exceed it.
    facts.push(quota(window, name, isRejected && (name === named || isFull(window))));
  }
  return facts;
}

function isFull(window: Json): boolean {
  return textAt(window, "status") === "rejected";
}

function quota(from: Json, window: string | null, isRejected: boolean): Fact {
  const used = numberAt(from, "utilization");
  return {
    fact: "quota",
    isRejected,
    resetsAtMs: readEpochMs(from["resetsAt"]),
    window,
    usedPct: used === undefined ? null : used * 100,
  };
}
