/** Awaited records: the records of tasks that ran here for another machine, until that machine confirms that it has the result. */
import { inboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { pathIn, type Trays } from "../files/trays.ts";

/** @returns a function that says whether another machine still needs the record of this id; it throws a system error when that is not known */
export function awaitedRecords(
  { storage }: Pick<Trays, "storage">,
  { jobs }: Pick<StateTree, "jobs">,
): (id: string) => boolean {
  // The note in `jobs/` has the same name as the task's file in the inbox.
  return (id) => storage.look(pathIn(jobs, inboxName({ id }))) !== undefined;
}
