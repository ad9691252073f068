/** Opens a journal file for reading. */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";

/** With O_NONBLOCK, opening a pipe at this path does not wait for a writer. */
const TO_READ = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);

/** Opens a journal for reading; undefined when it does not exist. @throws a system error */
export function openJournal(path: string): number | undefined {
  try {
    return fs.openSync(path, TO_READ);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
