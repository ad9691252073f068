/** Describes for people what holds tasks back: a group, agent or limit that is full, paused, used up or unknown. Pure. */
import type { ClosedGate } from "../../core/documents.ts";
import { isoTime } from "../../core/iso-time.ts";
import type { Rate } from "../../core/rate.ts";
import type { Limited } from "./places.ts";

/** Undefined while there is a free place. */
export function fullGate(
  { kind, name }: Limited,
  count: number,
  slots = Number.POSITIVE_INFINITY,
): ClosedGate | undefined {
  if (count < slots) return undefined;
  const todo =
    slots > 0
      ? "wait"
      : kind === "agent"
        ? "give it slots in config.yaml (agents)"
        : `mailchute ${kind} set ${name} --slots N`;
  return {
    gate: `${kind}-${name}`,
    agents: kind === "agent" ? [name] : [],
    ...(kind === "group" ? { group: name } : kind === "limit" ? { limit: name } : {}),
    until_ms: 0,
    why: `${kind} ${name}: ${count} of ${slots} running`,
    do: todo,
  };
}

export function pausedGate(group: string): ClosedGate {
  return {
    gate: `group-${group}`,
    agents: [],
    group,
    until_ms: 0,
    why: `group ${group} is paused: mailchute group resume ${group}`,
    do: `mailchute group resume ${group}`,
  };
}

export function unknownGate(limit: string): ClosedGate {
  return {
    gate: `limit-${limit}`,
    agents: [],
    limit,
    until_ms: 0,
    why: `limit ${limit} is not in config.yaml: name it there (limits) and restart mailchute run`,
    do: "name it in config.yaml (limits) and restart mailchute run",
  };
}

/** @param atMs when the next start is (epoch ms) */
export function rateGate(limit: string, { text }: Rate, atMs: number): ClosedGate {
  return {
    gate: `rate-${limit}`,
    agents: [],
    limit,
    until_ms: Math.ceil(atMs),
    why: `limit ${limit}: its rate of ${text} is used up, the next start is at ${isoTime(Math.ceil(atMs))}`,
    do: "wait",
  };
}
