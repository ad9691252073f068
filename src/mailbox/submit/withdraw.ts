/** Withdraw: the sender of a task takes it out of the inbox again. */
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { inboxName } from "../../core/names.ts";
import { readIfThere } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";
import { asidePath, takeAside } from "./aside.ts";
import { finishAside } from "./duplicates.ts";

/**
 * Takes `inbox/<id>.json` out if `isOurs` recognizes the file. It uses a rename, so that only one gets the file when a worker or
 * supervisor takes it at the same moment. A file of another sender is put back.
 * @returns false when no such file waits in the inbox
 */
export function withdraw(trays: Trays, id: string, isOurs: (bytes: Buffer) => boolean): boolean {
  const { storage } = trays;
  if (!holdsOurs(trays, join(trays.inbox, inboxName({ id })), isOurs)) return false;
  const marker = takeAside(trays, { id });
  if (marker === undefined) return false;
  const aside = asidePath(trays, marker);
  if (!holdsOurs(trays, aside, isOurs)) {
    // The file was replaced between the look and the move: it belongs to another sender.
    finishAside(trays, marker);
    return false;
  }
  try {
    storage.unlink(aside);
    return true;
  } catch (error) {
    // This process was stopped for so long that recovery has put the file back.
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
}

function holdsOurs(trays: Trays, path: string, isOurs: (bytes: Buffer) => boolean): boolean {
  const bytes = readIfThere(trays, path);
  return bytes !== undefined && isOurs(bytes);
}
