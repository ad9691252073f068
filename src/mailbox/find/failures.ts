/** Says whether a task has failed for good, and why its dependents are skipped. Reads only. */
import { type Skip, skipOf } from "../../core/dependencies.ts";
import { errorName } from "../../core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../core/task.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { isRefused, readRecord } from "./settled-record.ts";

/** The longest chain of duplicates that is followed. Each is a duplicate of the next. */
const FOLLOWED_MAX = 8;

/**
 * True if the task has failed for good. A refused file is no failure: its id is free. A duplicate has failed when the task that
 * holds its key has failed.
 * @throws a system error: then it is not known
 */
export function isFailed(trays: Trays, id: string): boolean {
  return skipAfter(trays, id) !== undefined;
}

/** Whether the task has an error record. That is enough when the task is known to have failed. @throws a system error */
export function hasErrorRecord({ failed, storage }: Trays, id: string): boolean {
  return storage.look(pathIn(failed, errorName(id))) !== undefined;
}

/** Why tasks that depend on this one are skipped; undefined when it has not failed. @throws a system error: then it is not known */
export function skipAfter(trays: Trays, id: string, followed = FOLLOWED_MAX): Skip | undefined {
  if (!hasErrorRecord(trays, id)) return undefined;
  const record = readRecord(trays, errorPath(trays, id))?.record;
  if (record === undefined) return skipOf(id, undefined);
  if (isRefused(record)) return undefined;
  const of = duplicateIn(record);
  if (of === undefined || followed === 0) return skipOf(id, skipIn(record));
  const why = skipAfter(trays, of, followed - 1);
  return why === undefined ? undefined : skipOf(id, why);
}

/**
 * The task that holds the key of this duplicate; undefined when this task is no duplicate. Tasks that depend on this one wait for
 * that one.
 */
export function duplicateOf(trays: Trays, id: string): string | undefined {
  if (!hasErrorRecord(trays, id)) return undefined;
  const record = readRecord(trays, errorPath(trays, id))?.record;
  return record === undefined ? undefined : duplicateIn(record);
}

/** The task at the end of a chain of duplicates. */
export function lastOf(trays: Trays, id: string): string {
  let last = id;
  for (let i = 0; i < FOLLOWED_MAX; i++) last = duplicateOf(trays, last) ?? last;
  return last;
}

function errorPath({ failed }: Trays, id: string): string {
  return pathIn(failed, errorName(id));
}

/** The task that held the key, from the record of a duplicate; undefined for any other record. */
export function duplicateIn(record: ResultRecord | ErrorRecord): string | undefined {
  return record.status === "failed" && record.kind === "duplicate_key" ? record.of : undefined;
}

/** Why a task was skipped, from its record; undefined for any other record. */
export function skipIn(record: ResultRecord | ErrorRecord): Skip | undefined {
  if (record.status !== "failed" || record.kind !== "dependency_failed") return undefined;
  const { cause, root, depth, chain } = record;
  if (typeof cause !== "string" || typeof root !== "string") return undefined;
  return {
    cause,
    root,
    depth: typeof depth === "number" ? depth : 1,
    chain: Array.isArray(chain) ? chain.map(String) : [cause],
  };
}
