/** Counts from the names in `processing/` how many places of each group and limit are taken, for people. Reads only. */
import { decodeTask } from "../../codec/task-codec.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { takesPlaces } from "../../core/names.ts";
import { limitKey, type TaskLimits } from "../../core/task-limits.ts";
import { limitsOf, readNeeds } from "../../core/waiting-task.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { listLive } from "../../mailbox/find/locate.ts";

/** At most this many tasks are read. */
const READ_MAX = 5000;

/** @returns by `limitKey` */
export function countInWork(trays: Trays, limits: TaskLimits): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (key: string, more: number): void =>
    void counts.set(key, (counts.get(key) ?? 0) + more);
  for (const place of listLive(trays).slice(0, READ_MAX)) {
    const { name } = place;
    if (name?.isBatch === true || (name?.stage === "hold" && !takesPlaces(name))) continue;
    try {
      const { bytes } = trays.storage.read(place.path, TASK_BYTES_MAX);
      if (bytes === undefined) continue;
      const { group, needs } = limitsOf(decodeTask(bytes, place.id).task);
      const { weight, limits: own } = readNeeds(needs);
      if (group !== undefined)
        add(limitKey("group", group), Math.min(weight, limits.slotsOf("group", group) ?? weight));
      for (const name of limits.namesOf(group, own)) add(limitKey("limit", name), 1);
    } catch {
      // The task has just left `processing/`, or the file is no task.
    }
  }
  return counts;
}
