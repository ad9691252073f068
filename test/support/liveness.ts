/**
 * Whether each task is run in its time: a look now and then at a pool from outside, which counts for each file that waits how
 * long it could have run. What waits for nothing for too long is a fault, even where all settle in the end.
 */
import fs from "node:fs";
import { join } from "node:path";
import { parseName, readInboxName } from "../../src/core/names.ts";
import { judgeOwner } from "../../src/host/identity.ts";
import { type Pool, readJson } from "./pool.ts";
import { timeLimitMs } from "./time-limit.ts";

export interface LivenessOptions {
  /** Tasks that the pool runs at once when nobody has said otherwise. */
  slots: number;
  /** What is ready waits so long for its backoff, whatever its file's time says (ms). */
  backoffMaxMs: number;
  /** What could run for so long, on a free machine, and does not, waits for nothing (ms). */
  limitMs: number;
  /** Whether this one waits for others, or for its time. */
  isWaiting?: (id: string) => boolean;
}

interface Waiting {
  /** Since it was first seen, while the pool could have run it (ms). */
  idleMs: number;
  sinceMs: number;
  isTold: boolean;
}

/** Who looks rarely, or stood still, counts no more than this for one look (ms). */
const LOOK_MS_MAX = 1000;

export class Liveness {
  readonly problems: string[] = [];
  private readonly pool: Pool;
  private readonly o: LivenessOptions;
  private readonly waiting = new Map<string, Waiting>();
  private lookedMs: number | undefined;
  /** The longest that one could have run and did not (ms). */
  longestMs = 0;

  constructor(pool: Pool, options: LivenessOptions) {
    this.pool = pool;
    this.o = options;
  }

  /** @param isAttended whether a supervisor lives that is not held up */
  look(isAttended: boolean): void {
    const nowMs = performance.now();
    const passedMs = Math.min(nowMs - (this.lookedMs ?? nowMs), LOOK_MS_MAX);
    this.lookedMs = nowMs;
    const inbox = list(this.pool.inbox);
    const processing = list(this.pool.processing);
    const claims = processing.filter((file) => parseName(file)?.stage === "w");
    // Not run by any process: it waits to be taken back.
    const orphans = claims.filter(isOrphan);
    const files = [
      ...inbox.filter((file) => readInboxName(file).kind === "task"),
      ...processing.filter((file) => parseName(file)?.stage === "ready"),
      ...orphans,
    ];
    const present = new Set(files);
    for (const file of this.waiting.keys()) if (!present.has(file)) this.waiting.delete(file);
    const isAble = isAttended && claims.length - orphans.length < this.freeSlots();
    for (const file of files) {
      const known = this.waiting.get(file) ?? { idleMs: 0, sinceMs: nowMs, isTold: false };
      this.waiting.set(file, known);
      const isOwed = orphans.includes(file) ? isAttended : isAble;
      if (isOwed && !this.hasReason(file, nowMs - known.sinceMs)) this.count(file, known, passedMs);
    }
  }

  private count(file: string, waiting: Waiting, passedMs: number): void {
    waiting.idleMs += passedMs;
    this.longestMs = Math.max(this.longestMs, waiting.idleMs);
    if (waiting.isTold || waiting.idleMs < timeLimitMs(this.o.limitMs)) return;
    waiting.isTold = true;
    this.problems.push(
      `${file} waits for nothing: for ${Math.round(waiting.idleMs)} ms it could have run`,
    );
  }

  /** Its backoff, and what it says itself. */
  private hasReason(file: string, seenMs: number): boolean {
    const ready = parseName(file);
    if (ready?.stage === "ready" && seenMs <= this.o.backoffMaxMs) return true;
    const meaning = ready ?? readInboxName(file);
    return "id" in meaning && meaning.id !== undefined && this.o.isWaiting?.(meaning.id) === true;
  }

  /** What the pool may run at once now; none while it is paused. */
  private freeSlots(): number {
    const control = readJson<{ paused?: boolean; max_workers?: number | null }>(
      join(this.pool.state, "control.json"),
    );
    return control?.paused === true ? 0 : (control?.max_workers ?? this.o.slots);
  }
}

function isOrphan(file: string): boolean {
  const token = parseName(file)?.token;
  return token !== undefined && judgeOwner(token) === "dead";
}

function list(dir: string): string[] {
  return fs.existsSync(dir) ? fs.readdirSync(dir) : [];
}
