/**
 * Keeps heavy tasks from waiting for ever behind light ones of their group: while the first task of a group is heavy and does not
 * fit, no other lane of that group may start. Pure.
 */
import { compareTasks, laneOf, readNeeds, type WaitingTask } from "../../core/waiting-task.ts";

/**
 * @param heads the first waiting task of each lane
 * @param isOpen true if a task of this lane may start, apart from the room in its group
 * @param fits true if the group has room for this weight
 * @returns the heavy task for which the others of its group wait, by group
 */
export function reservedTasks(
  heads: readonly WaitingTask[],
  isOpen: (lane: string) => boolean,
  fits: (group: string, weight: number) => boolean,
): Map<string, WaitingTask> {
  const reserved = new Map<string, WaitingTask>();
  const seen = new Set<string>();
  for (const task of [...heads].sort(compareTasks)) {
    const { group } = task;
    if (group === undefined || seen.has(group)) continue;
    if (!isOpen(laneOf(task))) continue;
    seen.add(group);
    const { weight } = readNeeds(task.needs);
    if (weight > 1 && !fits(group, weight)) reserved.set(group, task);
  }
  return reserved;
}
