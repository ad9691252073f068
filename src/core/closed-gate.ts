/** Decides whether a closed gate holds back the tasks of a lane. The starter and all that explain a wait ask this one function. Pure. */
import type { ClosedGate } from "./documents.ts";
import type { Lane } from "./waiting-task.ts";

export function closes(
  { gate, agents, group, owns, limit, groups = [], places }: ClosedGate,
  lane: Lane,
): boolean {
  if (lane.gate === gate) return true;
  // A task in work that waits for its next run has its places.
  if (places === true && lane.hasPlaces) return false;
  return (
    agents.includes(lane.agent) ||
    (group !== undefined && group === lane.group) ||
    (owns !== undefined && owns === lane.owns) ||
    (limit !== undefined && (lane.limits.includes(limit) || groups.includes(lane.group ?? "")))
  );
}
