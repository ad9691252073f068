/** Opens a journal file for reading. */
import { systemCode } from "../core/errors.ts";
import { JOURNAL_END_BYTES, JOURNAL_READ_BYTES_MAX } from "../core/limits.ts";
import { NAMED, openToRead } from "../host/regular-file.ts";

/** Opens a journal for reading; undefined when it does not exist. @throws a system error; EINVAL: not a regular file */
export function openJournal(path: string): number | undefined {
  try {
    return openToRead(path, NAMED);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The first byte to read of a journal of this size; of one that is too large to be ours, only the end. */
export function firstToRead(size: number, from = 0): number {
  return size - from > JOURNAL_READ_BYTES_MAX ? size - JOURNAL_END_BYTES : from;
}
