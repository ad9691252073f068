/** Finds the tasks that were skipped because of another one, directly or through others. Reads only. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeRecord } from "../../codec/records.ts";
import { foldId, isId, parseErrorName } from "../../core/names.ts";
import { readIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { skipIn } from "./failures.ts";

/** The ids of skipped tasks, by the folded id of the dependency that had failed. */
export type SkippedTasks = ReadonlyMap<string, readonly string[]>;

const WALK_NAMES = 256;
/** The search lets other work of the process go on after about this long (ms). */
const SLICE_MS = 8;

/** Reads the records in `failed/`. @param beat called between two slices of a long search @throws a system error */
export async function readSkipped(trays: Trays, beat?: () => void): Promise<SkippedTasks> {
  const { clock, storage } = trays;
  const found = new Map<string, string[]>();
  let untilMs = clock.monotonicMs() + SLICE_MS;
  const walk = storage.walk(trays.failed);
  try {
    for (let names = walk.next(WALK_NAMES); names.length > 0; names = walk.next(WALK_NAMES))
      for (const name of names) {
        const id = parseErrorName(name);
        const cause = id === undefined || !isId(id) ? undefined : causeOf(trays, name);
        if (id === undefined || cause === undefined) continue;
        const ids = found.get(foldId(cause));
        if (ids === undefined) found.set(foldId(cause), [id]);
        else ids.push(id);
        if (clock.monotonicMs() < untilMs) continue;
        beat?.();
        await nextTurn();
        untilMs = clock.monotonicMs() + SLICE_MS;
      }
  } finally {
    walk.close();
  }
  return found;
}

/** The skipped tasks that follow from this one, the nearest first. */
export function skippedAfter(skipped: SkippedTasks, id: string): string[] {
  const found: string[] = [];
  const known = new Set([foldId(id)]);
  const addBelow = (one: string): void => {
    for (const next of skipped.get(foldId(one)) ?? []) {
      if (known.has(foldId(next))) continue;
      known.add(foldId(next));
      found.push(next);
    }
  };
  addBelow(id);
  for (const one of found) addBelow(one);
  return found;
}

const MARK = Buffer.from('"kind":"dependency_failed"');

/** The dependency that had failed; undefined for the record of another failure, and for one that cannot be read. */
function causeOf(trays: Trays, name: string): string | undefined {
  try {
    const bytes = readIfThere(trays, pathIn(trays.failed, name));
    // Most records are of other failures, and to decode one costs more than to search it.
    if (bytes?.includes(MARK) !== true) return undefined;
    const record = decodeRecord(bytes)?.record;
    return record === undefined ? undefined : skipIn(record)?.cause;
  } catch {
    return undefined;
  }
}
