/** Says whether a task has failed for good, and why those that depend on it are skipped. Reads only. */
import { type Skip, skipOf } from "../../core/dependencies.ts";
import { errorName } from "../../core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../core/task.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { isRefusal, readRecord } from "./settled-record.ts";

/**
 * Whether the task has failed for good, and is not to run again. A file that was refused is no failure: its id is free.
 * @throws a system error: then it is not known
 */
export function isFailed(trays: Trays, id: string): boolean {
  return hasErrorRecord(trays, id) && !isRefusal(trays, pathIn(trays.failed, errorName(id)));
}

/** Whether the task has an error record. Enough for one that was known to have failed. @throws a system error */
export function hasErrorRecord({ failed, storage }: Trays, id: string): boolean {
  return storage.look(pathIn(failed, errorName(id))) !== undefined;
}

/** Why what depends on this task is to be skipped; undefined when it has not failed. @throws a system error: then it is not known */
export function skipAfter(trays: Trays, id: string): Skip | undefined {
  if (!isFailed(trays, id)) return undefined;
  const record = readRecord(trays, pathIn(trays.failed, errorName(id)))?.record;
  return skipOf(id, record === undefined ? undefined : skipIn(record));
}

/** What the record of a skipped task says; undefined for any other record. */
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
