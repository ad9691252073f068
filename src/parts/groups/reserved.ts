/**
 * Keeps heavy tasks from waiting for ever behind light ones of their group: while the first task of a group does not fit, no other of
 * that group starts. Pure.
 */
import { compareTasks, laneOf, readNeeds, type WaitingTask } from "../../core/waiting-task.ts";

/**
 * @param heads the first waiting task of each lane
 * @param isOpen whether all but the room in its group allows a task of this lane
 * @param fits whether the group has room for so much
 * @returns by group: the only lane that may start
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
