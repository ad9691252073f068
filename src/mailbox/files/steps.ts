/**
 * Single steps on files that other processes move too. The return value says when another process was faster. Any other failure is
 * thrown; so is ENOENT while the whole mailbox is missing, moved or unmounted: it may come back, so no process was faster.
 */
import { systemCode } from "../../core/errors.ts";
import { RECORD_BYTES_MAX } from "../../core/limits.ts";
import type { FileFacts } from "./storage.ts";
import { makeTrays, type Trays } from "./trays.ts";

/** One rename. False when the source is gone. */
export function moved(trays: Trays, from: string | Buffer, to: string): boolean {
  try {
    trays.storage.rename(from, to);
    return true;
  } catch (error) {
    if (isGone(trays, error, from)) return false;
    throw error;
  }
}

/**
 * True if the error means that the file is missing while the mailbox is there. The mailbox may have come back after the error, so
 * this looks for the file again.
 */
export function isGone({ dir, storage }: Trays, error: unknown, path: string | Buffer): boolean {
  if (systemCode(error) !== "ENOENT") return false;
  return storage.look(dir) !== undefined && storage.look(path) === undefined;
}

/** One link. False when the target name is used already. */
export function linked(trays: Trays, from: string, to: string): boolean {
  try {
    trays.storage.link(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw error;
  }
}

export function unlinkIfThere(trays: Trays, path: string): void {
  try {
    trays.storage.unlink(path);
  } catch (error) {
    if (!isGone(trays, error, path)) throw error;
  }
}

/**
 * Removes a name in `processing/` of a file that has just got another name in the inbox. With `power` the new name is made durable
 * first: otherwise a power cut could undo it and keep the removal, because the names are in different directories.
 */
export function unlinkMoved(trays: Trays, path: string): void {
  if (trays.durability === "power") trays.storage.syncDirNow(trays.inbox);
  unlinkIfThere(trays, path);
}

/** Creates a file of ours. Makes a missing tray, and replaces a file that an earlier try left under the name. */
export function createAnew(trays: Trays, path: string, bytes: Buffer): void {
  try {
    trays.storage.create(path, bytes);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") makeTrays(trays);
    else if (code === "EEXIST") trays.storage.unlink(path);
    else throw error;
    trays.storage.create(path, bytes);
  }
}

/** Sets the time of the file to now, if it is there. */
export function touchIfThere(trays: Trays, path: string): void {
  try {
    trays.storage.touch(path, trays.clock.wallMs());
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}

/** All bytes of the file; undefined when it is gone, or no regular file. */
export function readIfThere(trays: Trays, path: string): Buffer | undefined {
  return readWithFacts(trays, path)?.bytes;
}

/** The bytes, with the facts of the file that they were read from. */
export function readWithFacts(
  trays: Trays,
  path: string,
): { facts: FileFacts; bytes: Buffer | undefined } | undefined {
  try {
    return trays.storage.read(path, RECORD_BYTES_MAX);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
