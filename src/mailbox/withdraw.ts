/** Withdraw: a task that waits in the inbox is taken out again by its sender. */
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { inboxName } from "../core/names.ts";
import { asidePath, takeAside } from "./aside.ts";
import { finishAside } from "./duplicates.ts";
import { readIfThere } from "./steps.ts";
import type { Trays } from "./trays.ts";

/**
 * Takes `inbox/<id>.json` out, if it is the file that `isOurs` knows. By a rename, so that a worker or supervisor that
 * takes it at the same moment either has it or not; a file of another sender is put back.
 * @returns false when it does not wait there
 */
export function withdraw(trays: Trays, id: string, isOurs: (bytes: Buffer) => boolean): boolean {
  const { storage } = trays;
  if (!holdsOurs(trays, join(trays.inbox, inboxName({ id })), isOurs)) return false;
  const marker = takeAside(trays, { id });
  if (marker === undefined) return false;
  const aside = asidePath(trays, marker);
  if (!holdsOurs(trays, aside, isOurs)) {
    // Replaced between the look and the move: it is theirs.
    finishAside(trays, marker);
    return false;
  }
  try {
    storage.unlink(aside);
    return true;
  } catch (error) {
    // This process was stopped for so long that recovery has put it back.
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
}

function holdsOurs(trays: Trays, path: string, isOurs: (bytes: Buffer) => boolean): boolean {
  const bytes = readIfThere(trays, path);
  return bytes !== undefined && isOurs(bytes);
}
