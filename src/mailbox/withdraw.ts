/** Withdraw: a task that waits in the inbox is taken out again by whoever put it there. */
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { unlinkIfThere } from "./claim.ts";
import { randomToken } from "./random.ts";
import type { Trays } from "./trays.ts";

/**
 * Takes `inbox/<id>.json` out, if it is the file that `isOurs` knows. By a rename, so that a worker or supervisor that
 * takes it at the same moment either has it or not; a file of somebody else is put back.
 * @returns false when it does not wait there
 */
export function withdraw(trays: Trays, id: string, isOurs: (bytes: Buffer) => boolean): boolean {
  const { storage } = trays;
  const path = join(trays.inbox, `${id}.json`);
  const aside = join(trays.tmp, `${id}-${randomToken(10)}.withdrawn.tmp`);
  try {
    const { bytes } = storage.read(path, Number.MAX_SAFE_INTEGER);
    if (bytes === undefined || !isOurs(bytes)) return false;
    storage.rename(path, aside);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
  const { bytes } = storage.read(aside, Number.MAX_SAFE_INTEGER);
  const isTaken = bytes !== undefined && isOurs(bytes);
  // Replaced between the look and the move: it is theirs.
  if (!isTaken) storage.link(aside, path);
  unlinkIfThere(trays, aside);
  return isTaken;
}
