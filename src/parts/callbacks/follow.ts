/**
 * Submits the callbacks of a settled task, in the process that settles it. This happens after its record is visible and before its
 * marker is removed. A crash in between leaves the marker, and recovery calls this again. `submitOnce` puts each callback into the
 * inbox only once.
 */
import { resolve } from "node:path";
import { decodeRecord } from "../../codec/records.ts";
import { eventsOf, WAKE_TYPE } from "../../core/callback.ts";
import { ErrInvalidTask, ErrTaskExists } from "../../core/errors.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import type { Task } from "../../core/task.ts";
import type { Ended, FollowPlace, MakeFollow } from "../../mailbox/files/trays.ts";
import type { Call } from "./callback-task.ts";

export const callbacks: MakeFollow = (place) => (ended) => {
  const calls = callsOf(ended, place.settings);
  return calls.length === 0 ? undefined : () => submitCalls(place, ended, calls);
};

/** A callback of the task counts first, then one of its group, then one of the settings. */
function callsOf({ status, task, claim }: Ended, settings: FollowPlace["settings"]): Call[] {
  const calls: Call[] = [];
  for (const event of eventsOf(status)) {
    const own = task?.[event];
    const what = own ?? settings.groups[task?.group ?? ""]?.[event] ?? settings[event];
    if (what !== "none" && what !== undefined)
      calls.push({ event, what, isOwn: own !== undefined });
  }
  return calls.length === 0 || isSilent(task, claim.name.id) ? [] : calls;
}

/** A callback calls nothing: it would go on for ever. */
function isSilent(task: Task | undefined, id: string): boolean {
  return (
    task?.callback_of !== undefined || (task?.type === WAKE_TYPE && id.startsWith(`${WAKE_TYPE}.`))
  );
}

/** @throws a system error: the settlement then stays unfinished, and this is done again */
async function submitCalls(
  place: FollowPlace,
  ended: Ended,
  calls: readonly Call[],
): Promise<void> {
  const { trays, runs } = place;
  const record = decodeRecord(ended.record)?.record;
  if (record === undefined) return;
  // One failed task may end all that depend on it, and one running task may replace others with the same key. Callbacks of groups
  // and settings are called for that one task only.
  const isSkipped = record.status === "failed" && isSkippedKind(record.kind);
  const where = { mailbox: resolve(trays.dir), runs: resolve(runs) };
  // Loaded for the first callback: most tasks have none.
  const { submitOnce } = await import("../../mailbox/submit/submit-once.ts");
  const { callbackTask } = await import("./callback-task.ts");
  for (const call of isSkipped ? calls.filter(({ isOwn }) => isOwn) : calls) {
    const task = callbackTask(ended, record, call, where);
    try {
      await submitOnce(trays, { id: task.id, bytes: Buffer.from(`${JSON.stringify(task)}\n`) });
    } catch (error) {
      if (!(error instanceof ErrInvalidTask || error instanceof ErrTaskExists)) throw error;
      place.tell(`${call.event} of ${ended.claim.name.id} does not run: ${error.message}`);
    }
  }
}
