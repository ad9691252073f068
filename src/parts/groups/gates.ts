/**
 * The gate of a group, an agent or a limit: decides whether it is paused, unknown, without slots or full, and describes that for
 * people. Pure.
 */
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import { isoTime } from "../../core/iso-time.ts";
import { closedText } from "../../core/matching.ts";
import type { Rate } from "../../core/rate.ts";
import type { TaskLimits } from "../../core/task-limits.ts";
import { readNeeds, type WaitingTask } from "../../core/waiting-task.ts";
import type { Limited } from "./places.ts";

export interface LimitState {
  readonly limits: TaskLimits;
  /** Undefined for one without a limit. */
  slotsOf(limited: Limited): number | undefined;
  countOf(limited: Limited): number;
  hasRoom(limited: Limited, weight: number): boolean;
  /** The heavy task that comes first in this group, while it does not fit. */
  firstOf(group: string): WaitingTask | undefined;
  /** The groups to which this limit applies. */
  groupsUnder(limit: string): string[];
}

export type Fault = "paused" | "unknown" | "shut" | "full";

/** Why no task of this weight may start there now; undefined when one may, as far as its rate allows. */
export function faultOf(one: Limited, state: LimitState, weight = 1): Fault | undefined {
  const { kind, name } = one;
  if (kind === "group" && state.limits.isPaused(name)) return "paused";
  if (kind === "limit" && !state.limits.has("limit", name)) return "unknown";
  if (state.slotsOf(one) === 0) return "shut";
  return state.hasRoom(one, weight) ? undefined : "full";
}

export function gateOf(one: Limited, fault: Fault, state: LimitState): ClosedGate {
  const { kind, name } = one;
  const { why, do: todo } = explain(one, fault, state);
  return closedGate(`${kind}-${name}`, why, todo, {
    ...(kind === "agent" && { agents: [name] }),
    ...(kind === "group" && { group: name }),
    ...(kind === "limit" && { limit: name, groups: state.groupsUnder(name) }),
    places: true,
    ...(fault !== "full" && { is_shut: true }),
  });
}

function explain(one: Limited, fault: Fault, state: LimitState): Pick<ClosedGate, "why" | "do"> {
  const { kind, name } = one;
  switch (fault) {
    case "paused": {
      const todo = `mailchute group resume ${name}`;
      return { why: `group ${name} is paused: ${todo}`, do: todo };
    }
    case "unknown": {
      const todo = "(limits) and restart mailchute run";
      const why = `limit ${name} is not in config.yaml: name it there ${todo}`;
      return { why, do: `name it in config.yaml ${todo}` };
    }
    case "shut": {
      const isAgent = kind === "agent";
      const todo = isAgent
        ? "give it slots in config.yaml"
        : `mailchute ${kind} set ${name} --slots N`;
      return { why: closedText(kind, name), do: todo };
    }
    default: {
      const first = kind === "group" ? state.firstOf(name) : undefined;
      const but = first && `; ${first.id} comes first and takes ${readNeeds(first.needs).weight}`;
      const why = `${kind} ${name}: ${state.countOf(one)} of ${state.slotsOf(one)} running`;
      return { why: why + (but ?? ""), do: "wait" };
    }
  }
}

/** @param atMs when the next start is (epoch ms) */
export function rateGate(
  limit: string,
  { text }: Rate,
  atMs: number,
  groups: string[],
): ClosedGate {
  const until_ms = Math.ceil(atMs);
  const why = `limit ${limit}: its rate of ${text} is used up, the next start is at ${isoTime(until_ms)}`;
  return closedGate(`rate-${limit}`, why, "wait", { limit, groups, until_ms });
}
