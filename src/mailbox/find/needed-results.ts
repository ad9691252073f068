/** Needed results: those on which tasks in the inbox depend. The inbox is read at the first question. */
import { decodeTask } from "../../codec/task-codec.ts";
import { readDependencies } from "../../core/dependencies.ts";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { foldId, readInboxName } from "../../core/names.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { lastOf } from "./failures.ts";

/** @returns a function that says whether a waiting task depends on this id */
export function neededResults(trays: Trays): (id: string) => boolean {
  let needed: ReadonlySet<string> | undefined;
  return (id) => {
    needed ??= readNeeded(trays);
    return needed.has(foldId(id));
  };
}

/** @throws a system error: a task that cannot be read now may depend on any id */
function readNeeded(trays: Trays): Set<string> {
  const needed = new Set<string>();
  const walk = trays.storage.walk(trays.inbox);
  try {
    for (let names = walk.next(1024); names.length > 0; names = walk.next(1024))
      for (const name of names)
        for (const id of dependenciesOf(trays, name)) {
          needed.add(foldId(id));
          needed.add(foldId(lastOf(trays, id)));
        }
  } finally {
    walk.close();
  }
  return needed;
}

function dependenciesOf(trays: Trays, name: string): readonly string[] {
  const meaning = readInboxName(name);
  if (meaning.kind !== "task" || meaning.isBatch === true) return [];
  try {
    const { bytes } = trays.storage.read(pathIn(trays.inbox, name), TASK_BYTES_MAX);
    return bytes === undefined
      ? []
      : readDependencies(decodeTask(bytes, meaning.id).task.metadata?.dependencies).map(
          ({ id }) => id,
        );
  } catch (error) {
    // The task was refused or accepted in the meantime.
    if (error instanceof ErrInvalidTask || systemCode(error) === "ENOENT") return [];
    throw error;
  }
}
