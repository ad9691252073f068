/**
 * Tracks inbox files that must be looked at again: incomplete ones until they stop changing, and those that cannot be read or
 * moved. The latter are retried with a growing delay until they change.
 */
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { hasWriter } from "../../host/writers.ts";
import type { FileFacts } from "../../mailbox/files/storage.ts";

/** Notes by file name. A file that has changed since it was noted counts as another file. */
abstract class NotedFiles<Note extends { key: string }> {
  protected readonly files = new Map<string, Note>();

  constructor(protected readonly clock: Clock) {}

  get count(): number {
    return this.files.size;
  }

  names(): Iterable<string> {
    return this.files.keys();
  }

  has(name: string): boolean {
    return this.files.has(name);
  }

  forget(name: string): void {
    this.files.delete(name);
  }
}

interface Incomplete {
  key: string;
  /** Monotonic ms at which the file was first seen incomplete. */
  firstMs: number;
  /** Monotonic ms since when the file has not changed. */
  sinceMs: number;
  lookAtMs: number;
}

/** First pause before an incomplete file is looked at again (ms). It grows with the time for which the file has not changed. */
const RELOOK_MS_MIN = 5;
const RELOOK_MS_MAX = 250;
/** People hear of a file that stays incomplete for so long (ms): each file that is just being dropped is incomplete for a moment. */
const TOLD_AFTER_MS = 500;

/** Incomplete files: whether a process may still be writing them, since when they have not changed, when to look again. */
export class IncompleteFiles extends NotedFiles<Incomplete> {
  /** @param settleMs how long a file must not change before it counts as complete */
  constructor(
    clock: Clock,
    private readonly settleMs: number,
  ) {
    super(clock);
  }

  /** How many files people should hear of. */
  toldCount(): number {
    const untilMs = this.clock.monotonicMs() - TOLD_AFTER_MS;
    let count = 0;
    for (const { firstMs } of this.files.values()) if (firstMs <= untilMs) count++;
    return count;
  }

  /** Names that must be looked at again now. */
  *due(nowMs: number): Generator<string> {
    for (const [name, { lookAtMs }] of this.files) if (lookAtMs <= nowMs) yield name;
  }

  /** When the next file must be looked at again (monotonic ms). */
  nextLookMs(): number | undefined {
    let next: number | undefined;
    for (const { lookAtMs } of this.files.values())
      if (next === undefined || lookAtMs < next) next = lookAtMs;
    return next;
  }

  /** True once the file has not changed for the settle time and no process has it open for writing. The file is then forgotten here. */
  isQuiet(name: string, facts: FileFacts): boolean {
    const nowMs = this.clock.monotonicMs();
    const entry = this.noted(name, facts, nowMs);
    const quietMs = nowMs - entry.sinceMs;
    if (quietMs < this.settleMs) {
      entry.lookAtMs = nowMs + Math.min(Math.max(quietMs / 4, RELOOK_MS_MIN), RELOOK_MS_MAX);
      return false;
    }
    const isWritten = facts.kind === "file" && hasWriter(facts, entry.sinceMs);
    if (isWritten === "unsure") {
      entry.lookAtMs = nowMs + RELOOK_MS_MIN;
      return false;
    }
    if (isWritten) {
      entry.sinceMs = nowMs;
      entry.lookAtMs = nowMs + RELOOK_MS_MAX;
      return false;
    }
    this.files.delete(name);
    return true;
  }

  /** Whether a process has had the file open for writing since it was first seen in this state, as far as we can know. */
  hasWriter(name: string, facts: FileFacts): boolean | "unsure" {
    return hasWriter(facts, this.noted(name, facts, this.clock.monotonicMs()).sinceMs);
  }

  /** Asks again soon, because an answer about the file is still missing; its settle time continues. */
  askAgain(name: string, facts: FileFacts): void {
    const nowMs = this.clock.monotonicMs();
    this.noted(name, facts, nowMs).lookAtMs = nowMs + RELOOK_MS_MIN;
  }

  private noted(name: string, facts: FileFacts, nowMs: number): Incomplete {
    const key = keyOf(facts);
    const known = this.files.get(name);
    if (known?.key === key) return known;
    const entry = { key, firstMs: known?.firstMs ?? nowMs, sinceMs: nowMs, lookAtMs: nowMs };
    this.files.set(name, entry);
    return entry;
  }
}

/** A text that differs after each change of a file. */
function keyOf(facts: FileFacts): string {
  return `${facts.dev}.${facts.ino}.${facts.size}.${facts.mtimeMs}.${facts.ctimeMs}`;
}

interface Unreadable {
  key: string;
  pauseMs: number;
  /** Monotonic ms. */
  againMs: number;
  why: string;
}

/** First pause before such a file is tried again (ms); it doubles each time. */
const AGAIN_MS = 2000;
const AGAIN_MS_MAX = 300_000;

export class UnreadableFiles extends NotedFiles<Unreadable> {
  /** The first of these files, and what is wrong with each. */
  list(max: number): { name: string; why: string }[] {
    return [...this.files].slice(0, max).map(([name, { why }]) => ({ name, why }));
  }

  /** @returns false when the same file was noted before and has not changed */
  note(name: string, facts: FileFacts, error: unknown): boolean {
    const key = keyOf(facts);
    const known = this.files.get(name);
    const isKnown = known?.key === key;
    const pauseMs = isKnown ? Math.min(known.pauseMs * 2, AGAIN_MS_MAX) : AGAIN_MS;
    const againMs = this.clock.monotonicMs() + pauseMs;
    this.files.set(name, { key, pauseMs, againMs, why: messageOf(error) });
    return !isKnown;
  }

  /** True while the file has not changed and its pause is not over. A file that has changed is forgotten. */
  isLetBe(name: string, facts: FileFacts): boolean {
    const known = this.files.get(name);
    if (known === undefined) return false;
    if (known.key === keyOf(facts)) return this.clock.monotonicMs() < known.againMs;
    this.files.delete(name);
    return false;
  }
}
