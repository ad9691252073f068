/** Keeps texts that are too long for a line in `blobs/<sha256>`. The hash of the content is the name, so equal texts are kept once. */
import { createHash } from "node:crypto";
import { readRegularText } from "../../../host/regular-file.ts";
import { replaceText } from "../../../host/replace-document.ts";
import type { MailFolder } from "./mail-folder.ts";

/** A longer text is kept in a file (bytes). A text of this size and the other fields fit into a line. */
const TEXT_BYTES_MAX = 8 * 1024;
/** A text that is longer than this is refused (bytes). */
export const CONTENT_BYTES_MAX = 1024 * 1024;

/** The fields of a message that hold its text. A long text is first written to its file. @throws ErrMailboxDir, a system error */
export function keepText(
  folder: MailFolder,
  text: string,
): { content: string; content_ref: string | null } {
  // Escapes in JSON make the text longer, so the escaped text is measured.
  if (Buffer.byteLength(JSON.stringify(text)) <= TEXT_BYTES_MAX)
    return { content: text, content_ref: null };
  folder.make();
  const ref = hashOf(text);
  folder.makeDir("blobs");
  // Written even if the file exists: retention may be about to remove an old file together with its last message.
  replaceText(folder.path("blobs", ref), text, {
    stagingDir: folder.path(".tmp"),
    isDurable: folder.isDurable,
  });
  return { content: "", content_ref: ref };
}

/** The text of a message; undefined when its file is missing or was changed. */
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
