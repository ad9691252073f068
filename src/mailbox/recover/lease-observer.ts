/** Measures silence on the observer's own monotonic clock: an mtime is compared only with its earlier value, never with a clock. */
export class LeaseObserver {
  private readonly seen = new Map<string, { mtimeMs: number; sinceMs: number }>();
  private lastLookMs: number | undefined;

  /** True until the observer is first used. */
  get isNew(): boolean {
    return this.lastLookMs === undefined;
  }

  /** @param periodMs how often the observer is meant to look; when it is late by more than twice that, its own process was asleep */
  constructor(private readonly periodMs: number) {}

  /** Call once before each round. */
  beginRound(nowMs: number, files: ReadonlySet<string>): void {
    if (this.lastLookMs !== undefined && nowMs - this.lastLookMs > this.periodMs * 3) {
      for (const entry of this.seen.values()) entry.sinceMs = nowMs;
    }
    this.lastLookMs = nowMs;
    for (const file of this.seen.keys()) if (!files.has(file)) this.seen.delete(file);
  }

  /** For how long the mtime of this file has been the same (ms). */
  silenceMs(file: string, mtimeMs: number, nowMs: number): number {
    const entry = this.seen.get(file);
    if (entry === undefined || entry.mtimeMs !== mtimeMs) {
      this.seen.set(file, { mtimeMs, sinceMs: nowMs });
      return 0;
    }
    return nowMs - entry.sinceMs;
  }
}
