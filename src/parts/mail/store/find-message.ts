/** Finds a message by its id, in a part of a scope's segments. */
import type { MailFolder } from "./mail-folder.ts";
import { type Checked, decodeMessage, type Message, startOf } from "./message.ts";
import { findSeal, listSegments, readBytes } from "./segments.ts";

const NEWLINE = 0x0a;
const START: Checked = [0, 0];

/** @param to searched is what begins before this place, and, if it is given, at or behind `from` */
export function findMessage(
  folder: MailFolder,
  id: string,
  to: Checked,
  from: Checked = START,
): Message | undefined {
  const text = `\n${startOf(id)}`;
  for (const { k, path } of listSegments(folder)) {
    if (k < from[0] || k > to[0]) continue;
    const bytes = readBytes(path);
    const sealedAt = findSeal(bytes);
    const end = Math.min(
      sealedAt === -1 ? bytes.length : sealedAt,
      k === to[0] ? to[1] : bytes.length,
    );
    let at = bytes.indexOf(text, k === from[0] ? Math.max(0, from[1] - 1) : 0);
    for (; at !== -1 && at + 1 < end; at = bytes.indexOf(text, at + 1)) {
      const lineEnd = bytes.indexOf(NEWLINE, at + 1);
      if (lineEnd === -1) break;
      // A torn line may begin like this, too.
      const found = decodeMessage(bytes.toString("utf8", at + 1, lineEnd), folder.scope);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
