/** Windows of the account's quota, as Claude Code reports them with a subscription. */
import type { Fact } from "../../agents/stream/facts.ts";
import { readEpochMs } from "../../agents/stream/read-values.ts";
import { isObject } from "../../core/json-object.ts";
import { type Json, numberAt, objectAt, textAt } from "./fields.ts";

/**
 * One fact for each window. An event that names no window or refuses nothing also gives one without a window. The program calls each 429 a
 * refusal until the end of a window, even if the service says in the same answer that no window is full. Then no time is known.
 */
export function quotaOf(info: Json): Fact[] {
  const isRejected = textAt(info, "status") === "rejected";
  const named = textAt(info, "rateLimitType");
  const windows: Json = { ...objectAt(info, "unifiedWindows") };
  if (named !== undefined && !isObject(windows[named])) windows[named] = info;
  const facts: Fact[] = [];
  // A fact without a window is about the whole account. It comes first, because the facts of a window are more exact.
  const all = Object.entries(windows).flatMap(([name, window]): [string, Json][] =>
    isObject(window) ? [[name, window]] : [],
  );
  const isRefusing = ([name, window]: [string, Json]): boolean =>
    isRejected && (isFull(window) || (name === named && !isOpen(window)));
  if (!isRejected || !all.some(isRefusing)) facts.push(quota({}, null, isRejected));
  // A full window does not stop an account that may exceed it.
  for (const one of all) facts.push(quota(one[1], one[0], isRefusing(one)));
  return facts;
}

function isFull(window: Json): boolean {
  return textAt(window, "status") === "rejected" || (numberAt(window, "utilization") ?? 0) >= 1;
}

function isOpen(window: Json): boolean {
  return textAt(window, "status")?.startsWith("allowed") === true;
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
