/**
 * Reads the messages of a scope in order. A line that is torn or not ours is counted and skipped; of two messages with one id the first
 * one counts.
 */
import fs from "node:fs";
import { openToRead } from "../../../host/regular-file.ts";
import { findMessage } from "./find-message.ts";
import type { MailFolder } from "./mail-folder.ts";
import { type Checked, decodeMessage, type Message } from "./message.ts";
import { headOf, isSeal, listSegments, readAt, type Segment } from "./segments.ts";

/** A message with its number in the scope: cursors hold such numbers. */
export interface Numbered extends Message {
  n: number;
}

/** How much is read at once (bytes); more than any line. */
const PIECE_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** A whole line that was not decoded yet. */
interface Line {
  n: number;
  bytes: Buffer;
  place: Checked;
}

export class MessageReader {
  /** Lines that are no message. */
  badCount = 0;
  private readonly folder: MailFolder;
  private place: { segment: Segment; offset: number; n: number } | undefined;
  private readonly after: number;

  /** @param after reads messages whose number is above this */
  constructor(folder: MailFolder, after = 0) {
    this.folder = folder;
    this.after = after;
  }

  /** The number of the last line that was read. */
  get last(): number {
    return Math.max(this.after, (this.place?.n ?? 1) - 1);
  }

  /**
   * The messages that came since the last call.
   * @param texts only messages that contain one of these, as an address; without them all messages
   */
  *next(texts?: readonly string[]): Generator<Numbered> {
    for (const line of this.lines(texts)) {
      if (texts !== undefined && !texts.some((text) => line.bytes.includes(text))) continue;
      const message = this.decode(line);
      if (message !== undefined) yield message;
    }
  }

  /** The last messages that came since the last call and are wanted, the oldest first. */
  lastOf(count: number, isWanted: (message: Numbered) => boolean): Numbered[] {
    const lines = [...this.lines()];
    const found: Numbered[] = [];
    for (let at = lines.length - 1; at >= 0 && found.length < count; at--) {
      const line = lines[at];
      const message = line && this.decode(line);
      if (message !== undefined && isWanted(message)) found.push(message);
    }
    return found.reverse();
  }

  private decode({ n, bytes, place }: Line): Numbered | undefined {
    const message = decodeMessage(bytes.toString("utf8"), this.folder.scope);
    if (message === undefined) {
      // A line without anything in it is what ends a torn one.
      if (bytes.length > 0) this.badCount++;
      return undefined;
    }
    const { checked } = message;
    const isNext = checked === undefined || (checked[0] === place[0] && checked[1] === place[1]);
    if (!isNext && findMessage(this.folder, message.id, place, checked) !== undefined)
      return undefined;
    return { ...message, n };
  }

  /** @param texts may leave out lines that contain none of them */
  private *lines(texts?: readonly string[]): Generator<Line> {
    for (;;) {
      this.place ??= this.begin();
      if (this.place === undefined) return;
      const isAtEnd = yield* this.readOn(this.place, texts);
      if (!isAtEnd || !this.goOn(this.place)) return;
    }
  }

  /** The last segment whose messages are not all known, at its first message. */
  private begin(): typeof this.place {
    const segments = listSegments(this.folder);
    for (const segment of segments.reverse()) {
      const { first, from } = headOf(segment);
      const isFirst = segment === segments.at(-1);
      if (first <= this.after + 1 || isFirst) return { segment, offset: from, n: first };
    }
    return undefined;
  }

  /** Reads this segment to its end. @returns true when no more lines of it can come */
  private *readOn(
    place: NonNullable<typeof this.place>,
    texts: readonly string[] | undefined,
  ): Generator<Line, boolean> {
    const fd = openToRead(place.segment.path);
    let isSucceeded = false;
    try {
      for (;;) {
        const bytes = readAt(fd, place.offset, place.offset + PIECE_BYTES);
        // Most pieces have no mail of one reader, and their lines are only counted.
        const isHit = texts === undefined || texts.some((text) => bytes.includes(text));
        let at = 0;
        for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, at)) {
          if (isSeal(bytes, at, end)) return true;
          const [n, from, offset] = [place.n, at, place.offset];
          place.offset += end + 1 - at;
          place.n++;
          at = end + 1;
          if (isHit && n > this.after)
            yield { n, bytes: bytes.subarray(from, end), place: [place.segment.k, offset] };
        }
        if (at > 0) continue;
        // Lines may have come between the read and the look for a successor: then read once more.
        if (isSucceeded) return true;
        isSucceeded = this.isSucceeded(place);
        if (!isSucceeded) return false;
      }
    } finally {
      fs.closeSync(fd);
    }
  }

  /** After a power cut a segment may have a successor and no seal. */
  private isSucceeded({ segment }: NonNullable<typeof this.place>): boolean {
    return listSegments(this.folder).some(({ k }) => k > segment.k);
  }

  /** @returns false when the next segment is not there yet */
  private goOn(place: NonNullable<typeof this.place>): boolean {
    const segment = listSegments(this.folder).find(({ k }) => k > place.segment.k);
    if (segment === undefined) return false;
    const { first, from } = headOf(segment);
    Object.assign(place, { segment, offset: from, n: first });
    return true;
  }
}
