/** Inbox files that can be neither read nor moved. Each is tried again with a growing delay until it changes. */
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { FileFacts } from "../../mailbox/storage.ts";
import { keyOf } from "./incomplete-files.ts";

interface Hopeless {
  key: string;
  pauseMs: number;
  /** Monotonic ms. */
  againMs: number;
  why: string;
}

/** First pause before such a file is tried again (ms); each is twice the last. */
const AGAIN_MS = 2000;
const AGAIN_MS_MAX = 300_000;

export class UnreadableFiles {
  private readonly clock: Clock;
  private readonly files = new Map<string, Hopeless>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get count(): number {
    return this.files.size;
  }

  names(): Iterable<string> {
    return this.files.keys();
  }

  /** The first of them, and what is wrong with each. */
  list(max: number): { name: string; why: string }[] {
    return [...this.files].slice(0, max).map(([name, { why }]) => ({ name, why }));
  }

  has(name: string): boolean {
    return this.files.has(name);
  }

  forget(name: string): void {
    this.files.delete(name);
  }

  /** @returns false when it was there before, just as it is */
  note(name: string, facts: FileFacts, error: unknown): boolean {
    const key = keyOf(facts);
    const known = this.files.get(name);
    const isKnown = known?.key === key;
    const pauseMs = isKnown ? Math.min(known.pauseMs * 2, AGAIN_MS_MAX) : AGAIN_MS;
    const againMs = this.clock.monotonicMs() + pauseMs;
    this.files.set(name, { key, pauseMs, againMs, why: messageOf(error) });
    return !isKnown;
  }

  /** True while it is as it was, and its time has not come. One that has changed is forgotten. */
  isLetBe(name: string, facts: FileFacts): boolean {
    const known = this.files.get(name);
    if (known === undefined) return false;
    if (known.key === keyOf(facts)) return this.clock.monotonicMs() < known.againMs;
    this.files.delete(name);
    return false;
  }
}
