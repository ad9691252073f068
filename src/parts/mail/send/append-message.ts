/**
 * Appends a message to its scope. One `write` call on a descriptor with O_APPEND writes the whole line: the kernel chooses the end of
 * the file and writes there under the lock of the file, so lines of several processes never mix. No lock of ours is needed.
 *
 * A process that is killed in this call may leave a torn line. The next process ends that line first. Then it reads back its own line,
 * which must be alone and before any seal.
 */
import fs from "node:fs";
import { ErrInvalidMessage } from "../../../core/errors.ts";
import { randomToken } from "../../../mailbox/files/random.ts";
import { findMessage } from "../store/find-message.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { type Checked, encodeMessage, LINE_BYTES_MAX, type Message } from "../store/message.ts";
import { readAt } from "../store/read-bytes.ts";
import {
  currentSegment,
  findSeal,
  isSealed,
  makeNext,
  openSegment,
  SEGMENT_BYTES,
  type Segment,
  seal,
  syncMessages,
} from "../store/segments.ts";
import { removeOld } from "./remove-old.ts";

const NEWLINE = 0x0a;
const NONCE_CHARS = 8;

/**
 * Once this returns, the message is recorded. After a crash before that, the message may be recorded or not.
 * @param isNewId true if the id was made at random just now, so no other message has it
 * @returns undefined when the message was added; else the message that has this id already
 * @throws ErrInvalidMessage, ErrMailboxDir, a system error
 */
export function appendMessage(
  folder: MailFolder,
  message: Message,
  isNewId: boolean,
): Message | undefined {
  folder.make();
  for (;;) {
    const segment = currentSegment(folder);
    const checked = isNewId ? undefined : endOf(segment);
    const known = checked && findMessage(folder, message.id, checked);
    if (known !== undefined) {
      // The process that wrote it may have died before its fsync.
      if (folder.isDurable) syncMessages(folder);
      return known;
    }
    const own = checked ? { ...message, checked, nonce: randomToken(NONCE_CHARS) } : message;
    const line = Buffer.from(encodeMessage(own));
    if (line.length >= LINE_BYTES_MAX)
      throw new ErrInvalidMessage(
        `without its text the message has ${line.length} bytes, and a line has less than ${LINE_BYTES_MAX}`,
        { id: message.id, phase: "append", hint: "address fewer agents" },
      );
    const at = tryAppend(folder, segment, line);
    // Another process may have written the same id since we searched.
    if (at !== undefined)
      return checked && findMessage(folder, message.id, [segment.k, at], checked);
  }
}

/** @returns the offset of the line (bytes); undefined when it must be written again */
function tryAppend(folder: MailFolder, segment: Segment, line: Buffer): number | undefined {
  const fd = openSegment(segment);
  try {
    const { size } = fs.fstatSync(fd);
    if (size >= SEGMENT_BYTES) {
      if (!isSealed(fd, size)) seal(fd);
      // If the next segment survives a power cut, the lines of this one must survive, too: its first line holds their count.
      if (folder.isDurable) fs.fsyncSync(fd);
      makeNext(folder, segment);
      tryRemoveOld(folder);
      return undefined;
    }
    const isTorn = size > 0 && readAt(fd, size - 1, size)[0] !== NEWLINE;
    const bytes = Buffer.concat([...(isTorn ? [Buffer.from("\n")] : []), line, Buffer.from("\n")]);
    if (fs.writeSync(fd, bytes) !== bytes.length)
      throw Object.assign(new Error(`ENOSPC: the message could not be written whole`), {
        code: "ENOSPC",
        path: segment.path,
      });
    const at = findOwn(fd, size, line);
    if (at !== undefined && folder.isDurable) fs.fsyncSync(fd);
    return at;
  } finally {
    fs.closeSync(fd);
  }
}

/** Removes old segments. After an error, for example if the readers are unknown, they stay until the next file is full. */
function tryRemoveOld(folder: MailFolder): void {
  try {
    removeOld(folder, Date.now());
  } catch {
    // A failed clean-up is no reason to refuse a message.
  }
}

/** The offset at which our line is alone and before any seal. Undefined when a torn line swallowed it, or a seal came first. */
function findOwn(fd: number, sizeBefore: number, line: Buffer): number | undefined {
  const from = Math.max(0, sizeBefore - 1);
  const bytes = readAt(fd, from, fs.fstatSync(fd).size);
  const sealedAt = findSeal(bytes);
  const end = sealedAt === -1 ? bytes.length : sealedAt + 1;
  for (let at = bytes.indexOf(line); at !== -1 && at < end; at = bytes.indexOf(line, at + 1))
    if (bytes[at - 1] === NEWLINE && bytes[at + line.length] === NEWLINE) return from + at;
  return undefined;
}

/** The end of the last complete line. A line that is being written now ends later. */
function endOf(segment: Segment): Checked {
  const fd = openSegment(segment);
  try {
    const { size } = fs.fstatSync(fd);
    // No line of ours is longer.
    const from = Math.max(0, size - 2 * LINE_BYTES_MAX);
    return [segment.k, from + readAt(fd, from, size).lastIndexOf(NEWLINE) + 1];
  } finally {
    fs.closeSync(fd);
  }
}
