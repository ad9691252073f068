/**
 * Puts back the tasks that were skipped because of a task that runs again. Call it while the record of that task is the marker of
 * its retry: the task then no longer counts as failed, and recovery repeats this call after a crash.
 */
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DecodedRecord, decodeRecord } from "../../codec/records.ts";
import { errorName, formatName, type ProcessingName } from "../../core/names.ts";
import { newMarker } from "../claim/claim.ts";
import { moved, readWithFacts, touchIfThere, unlinkIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { isFailed, skipIn } from "../find/failures.ts";
import { isBeingRetried } from "../find/locate.ts";
import {
  readSkipped,
  type SkippedTasks,
  skippedAfter,
  skippedBelow,
} from "../find/skipped-records.ts";
import {
  dropSkipMarker,
  explainForeignRecord,
  keepAside,
  publishRetry,
  stageRetry,
} from "./retry-steps.ts";

export interface PutBackOptions {
  /** The skipped tasks, read after the record had left its tray. Left out: this call searches for them. */
  skipped?: () => Promise<SkippedTasks>;
  /** True: the caller searches for tasks that are skipped during this call. */
  leavesLate?: boolean;
  /** Called for each task that waits again. */
  onReopened?: (id: string) => void;
}

/**
 * How many tasks are put back at once. With `process`, this process does other work after each slice. With `power`, a slice
 * shares one wait for the disk.
 */
const AT_ONCE_MAX = { process: 32, power: 256 };

/**
 * @param marker of the retry @param record in it
 * @throws a system error: the marker stays, and recovery tries again
 */
export async function putSkippedBack(
  trays: Trays,
  marker: ProcessingName,
  record: DecodedRecord["record"],
  { skipped, leavesLate = false, onReopened }: PutBackOptions,
): Promise<void> {
  // Recovery looks for old markers: a fresh time shows that a process is at work.
  const beat = (): void => touchIfThere(trays, join(trays.processing, formatName(marker)));
  const { root, depth } = skipIn(record) ?? { root: marker.id, depth: 0 };
  // A retry of the root is in progress and finds all tasks below the root.
  const isUnderRoot = depth > 0 && isBeingRetried(trays, root);
  for (let search = skipped; ; search = undefined) {
    const all = await (search?.() ?? readSkipped(trays, beat));
    // The nearest come first: a task that waits again behind a failed one would be skipped again at once. A retry that died here
    // has put some back already; then only the root leads to the others.
    const others = isUnderRoot ? [] : skippedBelow(all, root, depth);
    const ids = new Set([...skippedAfter(all, marker.id), ...others]);
    const count = await putBackAll(trays, [...ids], beat, onReopened);
    // The next search finds tasks that were skipped after this search because a dependency was not put back yet.
    if (count === 0 || leavesLate) return;
  }
}

/** @returns how many were put back */
async function putBackAll(
  trays: Trays,
  ids: readonly string[],
  beat: () => void,
  onReopened: PutBackOptions["onReopened"],
): Promise<number> {
  const max = AT_ONCE_MAX[trays.durability];
  let count = 0;
  for (let at = 0; at < ids.length; at += max) {
    if (at > 0) {
      beat();
      await nextTurn();
    }
    const taken = ids.slice(at, at + max).flatMap((id) => take(trays, id) ?? []);
    count += taken.length;
    for (const id of await publishAll(trays, taken)) onReopened?.(id);
  }
  return count;
}

/** A record that was taken out of its tray. Its name is a marker, from which recovery finishes the retry. */
interface Taken {
  marker: ProcessingName;
  decoded: DecodedRecord;
}

/** Undefined when the task was put back already, or must stay skipped. */
function take(trays: Trays, id: string): Taken | undefined {
  const path = pathIn(trays.failed, errorName(id));
  const found = readWithFacts(trays, path);
  const decoded = found?.bytes === undefined ? undefined : decodeRecord(found.bytes);
  if (found === undefined || decoded?.taskText === undefined) return undefined;
  const cause = skipIn(decoded.record)?.cause;
  // Its dependency may have failed again.
  if (cause === undefined || isFailed(trays, cause)) return undefined;
  if (explainForeignRecord(trays, found.facts.uid) !== undefined) return undefined;
  const marker = newMarker(trays.clock, id, "again");
  return moved(trays, path, markerPath(trays, marker)) ? { marker, decoded } : undefined;
}

/** Takes each step of `finishRetry` for all these records together. @returns the ids of the tasks that wait again */
async function publishAll(trays: Trays, taken: readonly Taken[]): Promise<string[]> {
  const { storage } = trays;
  const isDurable = trays.durability === "power" && taken.length > 0;
  const staged = taken.map(({ marker, decoded: { taskText = "" } }) =>
    stageRetry(trays, marker, taskText),
  );
  if (isDurable) await Promise.all([storage.syncFiles(staged), storage.syncDirs([trays.failed])]);
  const published = taken.filter(({ marker, decoded }, index) => {
    if (publishRetry(trays, marker, staged[index] ?? "", decoded)) return true;
    keepAside(trays, marker, decoded.record, "taken");
    return false;
  });
  if (isDurable) await storage.syncDirs([trays.inbox]);
  for (const { marker, decoded } of published) {
    dropSkipMarker(trays, marker.id, decoded.record);
    unlinkIfThere(trays, markerPath(trays, marker));
  }
  return published.map(({ marker }) => marker.id);
}

function markerPath(trays: Trays, marker: ProcessingName): string {
  return pathIn(trays.processing, formatName(marker));
}
