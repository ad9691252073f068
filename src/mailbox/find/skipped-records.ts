/** Finds the tasks that were skipped because of another one, directly or through others. Reads only. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeRecord } from "../../codec/records.ts";
import type { Skip } from "../../core/dependencies.ts";
import { foldId, isId, parseErrorName } from "../../core/names.ts";
import { SKIPPED_MARKS } from "../../core/skipped.ts";
import { readIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { duplicateIn, skipIn } from "./failures.ts";

/** A skipped task. See `Skip`. */
export interface SkippedTask {
  id: string;
  /** Folded. */
  root: string;
  depth: number;
}

/** Skipped tasks, by the folded id of the dependency that had failed. */
export type SkippedTasks = ReadonlyMap<string, readonly SkippedTask[]>;

const WALK_NAMES = 256;
/** After about this time (ms) the search lets other work of the process run. */
const SLICE_MS = 8;

/** Reads the records in `failed/`. @param beat called between two slices of a long search @throws a system error */
export async function readSkipped(trays: Trays, beat?: () => void): Promise<SkippedTasks> {
  const { clock, storage } = trays;
  const found = new Map<string, SkippedTask[]>();
  // Many tasks have the same root: its text is kept once.
  const roots = new Map<string, string>();
  const duplicates: { id: string; of: string }[] = [];
  let untilMs = clock.monotonicMs() + SLICE_MS;
  const walk = storage.walk(trays.failed);
  try {
    for (let names = walk.next(WALK_NAMES); names.length > 0; names = walk.next(WALK_NAMES))
      for (const name of names) {
        const id = parseErrorName(name);
        const why = id === undefined || !isId(id) ? undefined : readWhy(trays, name);
        if (id === undefined || why === undefined) continue;
        const { skip, of } = why;
        if (of !== undefined) duplicates.push({ id, of });
        if (skip !== undefined) {
          const root = foldId(skip.root);
          if (!roots.has(root)) roots.set(root, root);
          addTo(found, skip.cause, [{ id, root: roots.get(root) ?? root, depth: skip.depth }]);
        }
        if (clock.monotonicMs() < untilMs) continue;
        beat?.();
        await nextTurn();
        untilMs = clock.monotonicMs() + SLICE_MS;
      }
  } finally {
    walk.close();
  }
  // A duplicate is not put back. Tasks that were skipped because of it also follow from the task that holds its key.
  for (const { id, of } of duplicates) addTo(found, of, found.get(foldId(id)) ?? []);
  return found;
}

/** The ids of the skipped tasks that follow from this one, the nearest first. */
export function skippedAfter(skipped: SkippedTasks, id: string): string[] {
  const found: string[] = [];
  const known = new Set([foldId(id)]);
  const addBelow = (one: string): void => {
    for (const next of skipped.get(foldId(one)) ?? []) {
      if (known.has(foldId(next.id))) continue;
      known.add(foldId(next.id));
      found.push(next.id);
    }
  };
  addBelow(id);
  for (const one of found) addBelow(one);
  return found;
}

/**
 * The ids of the skipped tasks that are further from this root than `depth`, the nearest first. A task between them may have been
 * put back.
 */
export function skippedBelow(skipped: SkippedTasks, root: string, depth: number): string[] {
  const key = foldId(root);
  return [...skipped.values()]
    .flat()
    .filter((one) => one.root === key && one.depth > depth)
    .sort((a, b) => a.depth - b.depth)
    .map(({ id }) => id);
}

function addTo(
  found: Map<string, SkippedTask[]>,
  cause: string,
  tasks: readonly SkippedTask[],
): void {
  if (tasks.length === 0) return;
  const before = found.get(foldId(cause));
  if (before === undefined) found.set(foldId(cause), [...tasks]);
  else before.push(...tasks);
}

const MARKS = SKIPPED_MARKS.map((mark) => Buffer.from(mark));

/** Why it was skipped: the dependency that had failed, or the task that had its key. Undefined for any other record. */
function readWhy(
  trays: Trays,
  name: string,
): { skip: Skip | undefined; of: string | undefined } | undefined {
  try {
    const bytes = readIfThere(trays, pathIn(trays.failed, name));
    // Most records are of other failures, and to decode one costs more than to search it.
    if (bytes === undefined || !MARKS.some((mark) => bytes.includes(mark))) return undefined;
    const record = decodeRecord(bytes)?.record;
    return record && { skip: skipIn(record), of: duplicateIn(record) };
  } catch {
    return undefined;
  }
}
