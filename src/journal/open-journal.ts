/** Opens a journal file for reading. */
import { systemCode } from "../core/errors.ts";
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
