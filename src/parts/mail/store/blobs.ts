/** Texts that are too long for a line: `blobs/<sha256>`, each named by its content, so the same text is kept once. */
import { createHash } from "node:crypto";
import { replaceText } from "../../../host/documents.ts";
import { readRegularText } from "../../../host/regular-file.ts";
import type { MailFolder } from "./mail-folder.ts";

/** A longer text is kept in a file (bytes). With the other fields a line stays below its limit. */
const TEXT_BYTES_MAX = 8 * 1024;
/** A text that is longer than this is refused (bytes). */
export const CONTENT_BYTES_MAX = 1024 * 1024;

/** The fields of a message that hold its text. Keeps a long text first. @throws ErrMailboxDir, a system error */
export function keepText(
  folder: MailFolder,
  text: string,
): { content: string; content_ref: string | null } {
  // JSON escapes some characters with more of them.
  if (Buffer.byteLength(JSON.stringify(text)) <= TEXT_BYTES_MAX)
    return { content: text, content_ref: null };
  folder.make();
  const ref = hashOf(text);
  folder.makeDir("blobs");
  // Written also when it is there: an old one may be about to be removed with the last message that had it.
  replaceText(folder.path("blobs", ref), text, {
    stagingDir: folder.path(".tmp"),
    isDurable: folder.isDurable,
  });
  return { content: "", content_ref: ref };
}

/** The text of a message; undefined when its file is missing or is not the one that was kept. */
export function textOf(
  folder: MailFolder,
  { content, content_ref: ref }: { content: string; content_ref: string | null },
): string | undefined {
  if (ref === null) return content;
  if (!/^[0-9a-f]{64}$/.test(ref)) return undefined;
  try {
    const text = readRegularText(folder.path("blobs", ref));
    return hashOf(text) === ref ? text : undefined;
  } catch {
    return undefined;
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
