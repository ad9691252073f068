/** Awaited records: those of tasks that ran here for another machine, as long as that one has not said that it has the result. */
import { inboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { pathIn, type Trays } from "../files/trays.ts";

/** @returns a function that says whether another machine still needs the record of this id; it throws a system error when that is not known */
export function awaitedRecords(
  { storage }: Pick<Trays, "storage">,
  { jobs }: Pick<StateTree, "jobs">,
): (id: string) => boolean {
  // A note has the name that the file of the task had in the inbox.
  return (id) => storage.look(pathIn(jobs, inboxName({ id }))) !== undefined;
}
