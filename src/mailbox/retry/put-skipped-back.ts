/**
 * Puts the tasks back that were skipped because of a task that is to run again. Called while the record of that task is the marker of
 * its retry: so it has not failed any more, and recovery repeats this after a crash.
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
} from "./retry.ts";

export interface PutBackOptions {
  /** The skipped tasks, read after the record had left its tray. Left out: they are looked for. */
  skipped?: () => Promise<SkippedTasks>;
  /** The caller looks for those that are skipped in the meantime. */
  leavesLate?: boolean;
  /** Called for each task that waits again. */
  onReopened?: (id: string) => void;
}

/** How many are put back at once. With `process` other work of the process goes on after each slice, with `power` they share a wait for the disk. */
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
  // The retry of the root finds them all.
  const isUnderRoot = depth > 0 && isBeingRetried(trays, root);
  for (let search = skipped; ; search = undefined) {
    const all = await (search?.() ?? readSkipped(trays, beat));
    // The nearest first: one that waits again below a failed one would be skipped again at once. A retry that died here has put some back
    // already, and only their root leads to the others.
    const others = isUnderRoot ? [] : skippedBelow(all, root, depth);
    const ids = new Set([...skippedAfter(all, marker.id), ...others]);
    const count = await putBackAll(trays, [...ids], beat, onReopened);
    // What was skipped after the search, because of one that was not put back yet, is found by the next one.
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

/** Undefined when it was put back already, or is not to be. */
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

/** The steps of `finishRetry`, each for all of them. @returns the ids of the tasks that wait again */
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
