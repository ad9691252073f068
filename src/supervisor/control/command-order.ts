/**
 * Keeps the waiting commands of the control inbox in order of arrival. It looks into each file, the newest first, to find the
 * commands that steer the pool, so that a flood of others cannot delay them. Works in slices; moves nothing.
 */
import { decodeCommand } from "../../codec/command-codec.ts";
import { type BackOffByCost, backOffByCost } from "../../core/back-off.ts";
import { type Subject, subjectOf } from "../../core/command.ts";
import { systemCode } from "../../core/errors.ts";
import { readInboxName } from "../../core/names.ts";
import type { FileFacts, Walk } from "../../mailbox/files/storage.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";

export interface Waiting {
  name: string;
  /** When the file got this name, by the file system's clock (epoch ms): a moved file keeps its mtime, which may be old. */
  arrivedMs: number;
  /** The subject that it steers; undefined when it steers nothing, is no command, or could not be read. */
  subject: Subject | undefined;
}

export interface CommandOrderHooks {
  /** Called when the inbox cannot be listed. */
  onError(error: unknown): void;
  /** Called when no file has this name any more. */
  onGone(name: string): void;
}

interface Known extends Waiting {
  /** When it was first looked at (monotonic ms). */
  seenMs: number;
  /** Differs between this file and one that replaces it. */
  key: string;
}

/**
 * How often the inbox is listed without a ring, because rings may be lost (ms). It happens in ticks that come anyway; a long
 * listing happens less often.
 */
const LOOK_MS = 100;
const LISTING_REST: BackOffByCost = { times: 10, mostMs: 10_000 };
/** How many names are listed at once. */
const LIST_NAMES = 256;
/** The length of one slice of listing, and of looking into files (ms). */
const LIST_SLICE_MS = 4;
const READ_SLICE_MS = 8;
/** A command that steers is small; a look into a larger file costs too much (bytes). */
const LOOK_BYTES_MAX = 64 * 1024;
/** How long a command that steers waits for earlier ones (ms). */
const OVERTAKE_MS = 50;
/** How long the oldest known command waits for older ones among the files not looked at yet (ms). */
const ORDER_MS = 5000;
/** Pause before a file that cannot be read is looked at again (ms). */
const LOOK_AGAIN_MS = 2000;
/** A quick test before decoding: most commands of a flood have none of these words. */
const STEERS = /pause|resume|set.workers|replan|drain|stop/;

export class CommandOrder {
  /** Names to look at: `rung` from rings, the newest last, and others from a listing. */
  private readonly rung: string[] = [];
  private readonly listed: string[] = [];
  private readonly unread = new Set<string>();
  private readonly known = new Map<string, Known>();
  /** Known commands from `at` on, the oldest first; some may be gone. */
  private order: Known[] = [];
  private at = 0;
  private isOrdered = true;
  /** The newest command of each subject, and since when a command of that subject has waited (monotonic ms). */
  private readonly newest = new Map<Subject, { waiting: Known; sinceMs: number }>();
  /** Names that must be looked at again, and when (monotonic ms). */
  private readonly later = new Map<string, number>();
  private laterAtMs = Number.POSITIVE_INFINITY;
  private walk: Walk | undefined;
  private listingMs = 0;
  private isListingWanted = true;
  private listAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly trays: Trays,
    private readonly hooks: CommandOrderHooks,
  ) {}

  /** Notes that a file came or went. @param name of the file, if known; otherwise the inbox is listed */
  ring(name: string | undefined): void {
    if (name === undefined) this.isListingWanted = true;
    else if (!this.unread.has(name)) {
      this.later.delete(name);
      this.unread.add(name);
      this.rung.push(name);
    }
  }

  /** True when something must be listed, looked at or taken. A listing that began before the last ring may have missed its file. */
  get hasWork(): boolean {
    const isListing = this.isListingWanted || this.walk !== undefined;
    return isListing || this.unread.size > 0 || this.known.size > 0;
  }

  /** Works for one slice: lists if that is due, and looks into files, the newest first. */
  work(): void {
    const nowMs = this.nowMs();
    if (nowMs >= this.laterAtMs) this.takeUpLater(nowMs);
    if (this.isListingWanted || this.walk !== undefined || nowMs >= this.listAtMs) this.list();
    const untilMs = this.nowMs() + READ_SLICE_MS;
    for (let name = this.nextUnread(); name !== undefined; name = this.nextUnread()) {
      this.unread.delete(name);
      this.look(name);
      if (this.nowMs() >= untilMs) break;
    }
  }

  /** The oldest known command; undefined when there is none, or when a file that was not listed or looked at yet may be older. */
  oldest(): Waiting | undefined {
    if (!this.isOrdered) {
      this.order = this.order.slice(this.at).filter((one) => this.isKnown(one));
      this.order.sort((a, b) => (isOlder(a, b) ? -1 : 1));
      this.at = 0;
      this.isOrdered = true;
    }
    for (; this.at < this.order.length; this.at++) {
      const head = this.order[this.at];
      if (head === undefined || !this.isKnown(head)) continue;
      const isAllSeen = this.unread.size === 0 && this.walk === undefined;
      return isAllSeen || this.nowMs() - head.seenMs >= ORDER_MS ? head : undefined;
    }
    this.order = [];
    this.at = 0;
    return undefined;
  }

  /**
   * The newest command of each subject, if one of its commands has waited long enough, in order of arrival.
   * @param isLastLook true: take them all, because there is no later look
   */
  overdue(isLastLook = false): Waiting[] {
    if (this.newest.size === 0) return [];
    const dueMs = isLastLook ? Number.POSITIVE_INFINITY : this.nowMs() - OVERTAKE_MS;
    return [...this.newest.values()]
      .filter(({ sinceMs }) => sinceMs <= dueMs)
      .map(({ waiting }) => waiting)
      .sort((a, b) => (isOlder(a, b) ? -1 : 1));
  }

  /** Removes a command that is taken now, or gone. @returns whether an earlier one may still wait */
  take(waiting: Waiting): boolean {
    this.known.delete(waiting.name);
    const { subject } = waiting;
    if (subject !== undefined && this.newest.get(subject)?.waiting === waiting)
      this.newest.delete(subject);
    if (this.unread.size > 0 || this.walk !== undefined) return true;
    const oldest = this.oldest();
    return oldest !== undefined && isOlder(oldest, waiting);
  }

  /** Call it when the newest command of a subject could not be taken: the earlier ones are then as urgent. */
  missed({ subject }: Waiting): void {
    if (subject === undefined) return;
    for (const one of this.known.values()) if (one.subject === subject) this.noteNewest(one);
  }

  /** Looks at the file again after that time, or when a ring names it. */
  postpone(name: string, ms: number): void {
    const dueMs = this.nowMs() + ms;
    this.later.set(name, dueMs);
    this.laterAtMs = Math.min(this.laterAtMs, dueMs);
  }

  close(): void {
    this.walk?.close();
    this.walk = undefined;
  }

  private nowMs(): number {
    return this.trays.clock.monotonicMs();
  }

  private isKnown(one: Known): boolean {
    return this.known.get(one.name) === one;
  }

  private nextUnread(): string | undefined {
    return this.rung.pop() ?? this.listed.pop();
  }

  private takeUpLater(nowMs: number): void {
    this.laterAtMs = Number.POSITIVE_INFINITY;
    for (const [name, dueMs] of this.later) {
      if (dueMs <= nowMs) {
        this.later.delete(name);
        this.noteListed(name);
      } else this.laterAtMs = Math.min(this.laterAtMs, dueMs);
    }
  }

  private list(): void {
    const beganMs = this.nowMs();
    if (this.walk === undefined) {
      this.isListingWanted = false;
      this.listingMs = 0;
    }
    let isOver = false;
    try {
      this.walk ??= this.trays.storage.walk(this.trays.inbox);
      do {
        const names = this.walk.next(LIST_NAMES);
        isOver = names.length === 0;
        for (const name of names)
          if (!this.known.has(name) && !this.later.has(name)) this.noteListed(name);
      } while (!isOver && this.nowMs() < beganMs + LIST_SLICE_MS);
    } catch (error) {
      isOver = true;
      if (systemCode(error) !== "ENOENT") this.hooks.onError(error);
    }
    const nowMs = this.nowMs();
    this.listingMs += nowMs - beganMs;
    if (!isOver) return;
    this.close();
    this.listAtMs = nowMs + Math.max(LOOK_MS, backOffByCost(this.listingMs, LISTING_REST));
  }

  private noteListed(name: string): void {
    if (this.unread.has(name)) return;
    this.unread.add(name);
    this.listed.push(name);
  }

  private look(name: string): void {
    const meaning = readInboxName(name);
    if (meaning.kind === "ignored") return;
    const path = pathIn(this.trays.inbox, name);
    const before = this.known.get(name);
    const facts = this.factsOf(name, path);
    if (facts === undefined) {
      this.hooks.onGone(name);
      if (before !== undefined) {
        this.take(before);
        this.missed(before);
      }
      return;
    }
    const key = `${facts.ino}.${facts.size}.${facts.mtimeMs}`;
    if (before?.key === key) return;
    const isCommand = meaning.kind === "task" && meaning.isBatch !== true;
    const subject = isCommand ? this.peek(path, meaning.id, facts) : undefined;
    const one: Known = {
      name,
      arrivedMs: facts.ctimeMs,
      subject,
      seenMs: before?.seenMs ?? this.nowMs(),
      key,
    };
    if (before !== undefined) this.take(before);
    this.known.set(name, one);
    const last = this.order.at(-1);
    if (last !== undefined && isOlder(one, last)) this.isOrdered = false;
    this.order.push(one);
    this.noteNewest(one);
  }

  private factsOf(name: string, path: string): FileFacts | undefined {
    try {
      return this.trays.storage.look(path);
    } catch (error) {
      this.hooks.onError(error);
      this.postpone(name, LOOK_AGAIN_MS);
      return undefined;
    }
  }

  private peek(path: string, id: string, { kind, size }: FileFacts): Subject | undefined {
    if (kind !== "file" || size > LOOK_BYTES_MAX) return undefined;
    try {
      const { bytes } = this.trays.storage.read(path, LOOK_BYTES_MAX);
      if (bytes === undefined || !STEERS.test(bytes.toString("latin1"))) return undefined;
      return subjectOf(decodeCommand(bytes, id));
    } catch {
      // The file is gone, unreadable or no command. The attempt to take it will show that.
      return undefined;
    }
  }

  private noteNewest(one: Known): void {
    if (one.subject === undefined) return;
    const newest = this.newest.get(one.subject);
    if (newest === undefined) this.newest.set(one.subject, { waiting: one, sinceMs: one.seenMs });
    else if (isOlder(newest.waiting, one)) newest.waiting = one;
  }
}

/** Whether the first command came before the second. When both came at the same time, the names decide. */
export function isOlder(
  a: { arrivedMs: number; name: string },
  b: { arrivedMs: number; name: string },
): boolean {
  return a.arrivedMs < b.arrivedMs || (a.arrivedMs === b.arrivedMs && a.name < b.name);
}
