/**
 * The ids of a full segment, `messages.<k>.ids`, as they stand in its lines: so a look for an id need not read all messages. A full
 * segment never changes, so any process that writes this file writes the same. Without the file the segment itself is read.
 */
import { replaceText } from "../../../host/documents.ts";
import type { MailFolder } from "./mail-folder.ts";
import { readBytes } from "./read-bytes.ts";

/** How the line of a message begins, with its id as JSON. */
const ID = /^\{"v":1,"id":("(?:[^"\\]|\\.)*"),/gm;

/** @param bytes its lines, without the first one and the seal @throws a system error */
export function keepIds(folder: MailFolder, k: number, bytes: Buffer): void {
  const ids = Array.from(bytes.toString("utf8").matchAll(ID), ([, id = ""]) => `${id}\n`);
  // Durable each time: an empty file after a power cut would say that no id is in use.
  const options = { stagingDir: folder.path(".tmp"), isDurable: true };
  replaceText(pathOf(folder, k), `\n${ids.join("")}`, options);
}

/** Whether a line of a full segment may have this id. */
export function mayHaveId(folder: MailFolder, k: number, id: string): boolean {
  try {
    return readBytes(pathOf(folder, k)).includes(`\n${JSON.stringify(id)}\n`);
  } catch {
    // It has none: an earlier version filled it, or it was removed.
    return true;
  }
}

export function pathOf(folder: MailFolder, k: number): string {
  return folder.path(`messages.${k}.ids`);
}
