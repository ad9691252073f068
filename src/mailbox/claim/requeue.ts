/** Requeue: puts a claimed task back into the inbox, as if it had just been dropped. A batch stays and only loses its claim. */
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { makeTrays, type Trays } from "../files/trays.ts";
import { type Claim, putBack } from "./claim.ts";

/**
 * Links the file into the inbox and then gives up the claim. A crash in between leaves both names of the file: the claim is
 * recovered, and the copy in the inbox is dropped as a duplicate with the same bytes.
 * @returns false when the lease was lost
 */
export function requeue(trays: Trays, claim: Claim): boolean {
  // The batch keeps its submission, so the results of its finished lines are still found.
  if (claim.name.isBatch === true) return putBack(trays, claim, 0, false) !== undefined;
  const target = join(trays.inbox, `${claim.name.id}.json`);
  try {
    trays.storage.link(claim.path, target);
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST") {
      const isOurs = trays.storage.look(target)?.ino === trays.storage.look(claim.path)?.ino;
      // Another task with this id was dropped in the meantime: ours keeps waiting in `processing/`.
      if (!isOurs) return putBack(trays, claim, 0, false) !== undefined;
      // The link is ours: a process died between the two steps.
    } else {
      if (code !== "ENOENT") throw error;
      if (trays.storage.look(claim.path) === undefined) return false;
      makeTrays(trays);
      trays.storage.link(claim.path, target);
    }
  }
  if (trays.durability === "power") trays.storage.syncDirNow(trays.inbox);
  try {
    trays.storage.unlink(claim.path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return false;
  }
  return true;
}
