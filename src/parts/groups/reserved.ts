/**
 * Keeps heavy tasks from waiting for ever behind light ones of their group: while the first task of a group is heavy and does not
 * fit, no other lane of that group may start. Pure.
 */
import { compareTasks, laneOf, readNeeds, type WaitingTask } from "../../core/waiting-task.ts";

/**
 * @param heads the first waiting task of each lane
 * @param isOpen true if a task of this lane may start, apart from the room in its group
 * @param fits true if the group has room for this weight
 * @returns the only lane that may start, by group
 */
export function reservedLanes(
  heads: readonly WaitingTask[],
  isOpen: (lane: string) => boolean,
  fits: (group: string, weight: number) => boolean,
): Map<string, string> {
  const reserved = new Map<string, string>();
  const seen = new Set<string>();
  for (const task of [...heads].sort(compareTasks)) {
    const { group } = task;
    if (group === undefined || seen.has(group)) continue;
    const lane = laneOf(task);
    if (!isOpen(lane)) continue;
    seen.add(group);
    const { weight } = readNeeds(task.needs);
    if (weight > 1 && !fits(group, weight)) reserved.set(group, lane);
  }
  return reserved;
}
