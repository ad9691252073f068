/**
 * Reads the messages of a scope in order. A line that is torn or no message is counted and skipped. Of two messages with one id the
 * first counts. A segment that retention removes during the read is skipped.
 */
import { findMessage } from "./find-message.ts";
import { type LineFilter, NO_LINES } from "./line-filter.ts";
import type { MailFolder } from "./mail-folder.ts";
import { decodeMessage, type Message } from "./message.ts";
import { linesFor } from "./segment-index.ts";
import { type Line, linesAt, linesOf, newBuffer, type Place } from "./segment-lines.ts";
import { headOf, listSegments, type Segment } from "./segments.ts";

/** A message with its number in the scope. Cursors hold such numbers. */
export interface Numbered extends Message {
  n: number;
}

/** `nextWithPauses` pauses for other work after this long (ms). */
const SLICE_MS = 2;

export class MessageReader {
  /** Lines that are no message. */
  badCount = 0;
  private place: Place | undefined;
  /** The segments in the last listing. */
  private segments: readonly Segment[] = [];
  private readonly buffer = newBuffer();

  /** @param after reads messages whose number is above this */
  constructor(
    private readonly folder: MailFolder,
    private readonly after = 0,
  ) {}

  /** A reader that reads only messages that come from now on. */
  static atEnd(folder: MailFolder): MessageReader {
    const reader = new MessageReader(folder);
    reader.place = reader.begin(Number.POSITIVE_INFINITY);
    for (const _ of reader.next(NO_LINES));
    return reader;
  }

  /** The number of the last line that was read. */
  get last(): number {
    return Math.max(this.after, (this.place?.n ?? 1) - 1);
  }

  /** The messages that came since the last call. @param filter left out: all of them */
  *next(filter?: LineFilter): Generator<Numbered> {
    for (const message of this.steps(filter)) if (message !== undefined) yield message;
  }

  /** Like `next`, but pauses for other work. */
  async *nextWithPauses(filter?: LineFilter): AsyncGenerator<Numbered> {
    let sinceMs = performance.now();
    for (const message of this.steps(filter)) {
      if (performance.now() - sinceMs >= SLICE_MS) {
        await new Promise((resolve) => setImmediate(resolve));
        sinceMs = performance.now();
      }
      if (message !== undefined) yield message;
    }
  }

  /**
   * The last wanted messages, the oldest first. Reads the newest segments first, and only as many as it needs. Must be called before
   * `next`, which then returns the messages that come later.
   */
  lastOf(count: number, isWanted: (message: Numbered) => boolean, filter?: LineFilter): Numbered[] {
    const found: Numbered[] = [];
    for (const segment of listSegments(this.folder).reverse()) {
      const place = startOf(segment);
      // Retention has just removed this segment and the earlier ones.
      if (place === undefined) break;
      const first = place.n;
      const isNewest = this.place === undefined;
      if (isNewest) this.place = place;
      const lines = kept(isNewest ? this.lines(filter) : this.readOn(place, filter));
      for (let at = lines.length - 1; at >= 0 && found.length < count; at--) {
        const line = lines[at];
        const message = line && this.decode(line);
        if (message !== undefined && isWanted(message)) found.push(message);
      }
      if (found.length >= count || first <= this.after + 1) break;
    }
    return found.reverse();
  }

  /** Yields messages, and undefined after each piece that was read. */
  private *steps(filter: LineFilter | undefined): Generator<Numbered | undefined> {
    for (const line of this.lines(filter)) yield line && this.decode(line);
  }

  private decode({ n, bytes, place }: Line): Numbered | undefined {
    if (n <= this.after) return undefined;
    const message = decodeMessage(bytes.toString("utf8"), this.folder.scope);
    if (message === undefined) {
      // An empty line ends a torn one, so it is not counted.
      if (bytes.length > 0) this.badCount++;
      return undefined;
    }
    const { checked } = message;
    const isNext = checked === undefined || (checked[0] === place[0] && checked[1] === place[1]);
    if (!isNext && findMessage(this.folder, message.id, place, checked) !== undefined)
      return undefined;
    return Object.assign(message, { n });
  }

  private *lines(filter: LineFilter | undefined): Generator<Line | undefined> {
    for (;;) {
      this.place ??= this.begin(this.after);
      if (this.place === undefined) return;
      const isAtEnd = yield* this.readOn(this.place, filter);
      if (!isAtEnd || !this.goOn(this.place)) return;
    }
  }

  /** The last segment whose messages are not all known, at its first message. */
  private begin(after: number): Place | undefined {
    if (after === 0) return this.listAgain().startAfter(0);
    let found: Place | undefined;
    for (const segment of listSegments(this.folder).reverse()) {
      const place = startOf(segment);
      if (place === undefined) break;
      found = place;
      if (place.n <= after + 1) break;
    }
    return found;
  }

  /** Reads this segment to its end. @returns true when no more lines of it can come */
  private *readOn(
    place: Place,
    filter: LineFilter | undefined,
  ): Generator<Line | undefined, boolean> {
    const indexed = filter?.keys && linesFor(this.folder, place.segment, filter.keys);
    if (indexed !== undefined) {
      yield* linesAt(place, indexed, this.after);
      return true;
    }
    if (yield* linesOf(place, filter, this.buffer)) return true;
    if (!this.isSucceeded(place)) return false;
    // Lines may have come between the read and the search for a successor.
    yield* linesOf(place, filter, this.buffer);
    return true;
  }

  /** After a power cut a segment may have a successor and no seal. */
  private isSucceeded({ segment }: Place): boolean {
    return listSegments(this.folder).some(({ k }) => k > segment.k);
  }

  /** @returns false when the next segment is not there yet */
  private goOn(place: Place): boolean {
    // Segments of an earlier listing may have been removed.
    const { k } = place.segment;
    const next = this.startAfter(k) ?? this.listAgain().startAfter(k);
    if (next === undefined) return false;
    Object.assign(place, next);
    return true;
  }

  private listAgain(): this {
    this.segments = listSegments(this.folder);
    return this;
  }

  private startAfter(k: number): Place | undefined {
    for (const segment of this.segments) {
      const place = segment.k > k ? startOf(segment) : undefined;
      if (place !== undefined) return place;
    }
    return undefined;
  }
}

/** Undefined when the segment was removed. */
function startOf(segment: Segment): Place | undefined {
  const head = headOf(segment);
  return head && { segment, offset: head.from, n: head.first };
}

/** Copies lines, because their buffer is reused for the next ones. */
function kept(lines: Iterable<Line | undefined>): Line[] {
  const all: Line[] = [];
  for (const line of lines)
    if (line !== undefined) all.push({ ...line, bytes: Buffer.from(line.bytes) });
  return all;
}
