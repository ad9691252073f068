/**
 * Keeps the pages of open streams as new as the files. One watch serves all streams, and a page that several streams want is made
 * once. The time for making pages is limited for all streams together, so that browsers never cost the pool more than that.
 */
import type { StateTree } from "../../core/state-tree.ts";
import { Allowance } from "./allowance.ts";
import type { EventStream, Wanted } from "./event-stream.ts";
import type { Pages } from "./find-page.ts";
import { TreeWatch } from "./tree-watch.ts";

const STREAMS_MAX = 64;
/** The least time between two events of a stream (ms). */
const LEAST_MS = 100;
/** The share of a core for making pages, and the most time that is saved for when something happens (ms). */
const SHARE = 0.02;
const SAVED_MS = 200;
/** The first page of a stream counts at most this much (ms), so that later pages need not wait long after it. */
const FIRST_MS = 50;
/** How often a page is made without a change, because no file shows some changes, such as an old heartbeat (ms). */
const ROUND_MS = 1000;
const BEAT_MS = 10_000;

export class Live {
  private readonly streams = new Map<EventStream, () => boolean>();
  private readonly watch: TreeWatch;
  private readonly allowance = new Allowance(SHARE, SAVED_MS, performance.now());
  private beats: NodeJS.Timeout | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isMaking = false;

  constructor(
    tree: StateTree,
    private readonly pages: Pages,
  ) {
    this.watch = new TreeWatch(
      tree,
      () => this.changed(),
      () => this.morePaths(),
    );
  }

  get isFull(): boolean {
    return this.streams.size >= STREAMS_MAX;
  }

  /** @param isAllowed asked again at each beat */
  add(stream: EventStream, isAllowed: () => boolean): void {
    this.streams.set(stream, isAllowed);
    this.watch.start();
    this.beats ??= setInterval(() => this.beat(), BEAT_MS);
    this.plan();
  }

  remove(stream: EventStream): void {
    this.streams.delete(stream);
    if (this.streams.size > 0) return;
    this.watch.stop();
    clearInterval(this.beats);
    this.beats = undefined;
    clearTimeout(this.timer);
  }

  close(): void {
    for (const stream of this.streams.keys()) {
      this.remove(stream);
      stream.end();
    }
  }

  private changed(): void {
    for (const stream of this.streams.keys()) stream.isDirty = true;
    this.plan();
  }

  private *morePaths(): Iterable<string> {
    const seen = new Set<string>();
    for (const { watch } of this.streams.keys())
      for (const path of watch) {
        if (seen.has(path)) continue;
        seen.add(path);
        yield path;
      }
  }

  private beat(): void {
    const nowMs = performance.now();
    for (const [stream, isAllowed] of this.streams) {
      if (isAllowed() && stream.beat(nowMs)) continue;
      this.remove(stream);
      stream.end();
    }
  }

  /** Sets the timer for the next page. */
  private plan(): void {
    if (this.isMaking || this.streams.size === 0) return;
    clearTimeout(this.timer);
    const nowMs = performance.now();
    let inMs = ROUND_MS;
    for (const { isDirty, madeMs, isFull } of this.streams.keys()) {
      if (isFull) continue;
      const untilMs = madeMs + (isDirty ? LEAST_MS : ROUND_MS) - nowMs;
      const allowedMs = this.allowedInMs(isDirty, madeMs, nowMs);
      inMs = Math.min(inMs, Math.max(untilMs, allowedMs));
    }
    this.timer = setTimeout(() => void this.makeNext(), Math.max(0, inMs));
  }

  /** Makes the page that has waited longest. */
  private async makeNext(): Promise<void> {
    const wanted = this.next();
    if (wanted !== undefined) {
      this.isMaking = true;
      for (const stream of this.of(wanted)) stream.isDirty = false;
      const isFirst = this.of(wanted).some(({ madeMs }) => !Number.isFinite(madeMs));
      const beganMs = performance.now();
      const before = process.cpuUsage();
      try {
        const { watch = [], ...page } = await this.pages.find(wanted.route, wanted.query, true);
        for (const stream of this.of(wanted)) {
          stream.watch = watch;
          if (stream.isFull) stream.isDirty = true;
          else stream.send(page);
        }
      } finally {
        const endedMs = performance.now();
        for (const stream of this.of(wanted)) stream.madeMs = endedMs;
        const { user, system } = process.cpuUsage(before);
        // On a busy machine most of the time is that of others, and the page must not become old for it.
        const tookMs = Math.min(endedMs - beganMs, (user + system) / 1000);
        this.allowance.use(isFirst ? Math.min(FIRST_MS, tookMs) : tookMs, endedMs);
        this.isMaking = false;
      }
    }
    this.plan();
  }

  private next(): Wanted | undefined {
    const nowMs = performance.now();
    let best: EventStream | undefined;
    for (const stream of this.streams.keys()) {
      const { isDirty, madeMs, isFull } = stream;
      if (isFull || nowMs < madeMs + (isDirty ? LEAST_MS : ROUND_MS)) continue;
      if (this.allowedInMs(isDirty, madeMs, nowMs) > 0) continue;
      if (best === undefined || madeMs < best.madeMs) best = stream;
    }
    return best?.wanted;
  }

  /** Time until the allowance permits a page (ms). The first page of a stream needs none, because a person waits for it. */
  private allowedInMs(isDirty: boolean, madeMs: number, nowMs: number): number {
    return Number.isFinite(madeMs) ? this.allowance.readyInMs(isDirty ? 0 : 0.5, nowMs) : 0;
  }

  private of({ key }: Wanted): EventStream[] {
    return [...this.streams.keys()].filter(({ wanted }) => wanted.key === key);
  }
}
