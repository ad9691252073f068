/** Rings when something in a few directories may have changed: file events where there are any, a slow poll always. */
import fs from "node:fs";

/** Longest silence between two rings (ms): events get lost, the look is the truth. */
const POLL_MS = 500;
/** A burst of events is one ring (ms). */
const CALM_MS = 20;

export class Doorbell {
  private readonly watchers: fs.FSWatcher[] = [];
  private readonly pollMs: number;
  private wake: (() => void) | undefined;
  private hasRung = false;

  constructor(paths: readonly string[], pollMs: number = POLL_MS) {
    this.pollMs = pollMs;
    for (const path of new Set(paths)) {
      try {
        const watcher = fs.watch(path, { persistent: false }, () => this.ring());
        // Out of watches, or the directory went away: the poll goes on.
        watcher.on("error", () => watcher.close());
        this.watchers.push(watcher);
      } catch {
        // Not there yet, or no watches left: the poll serves.
      }
    }
  }

  /** Resolves at the next ring, at the latest after the poll time or `limitMs`. */
  async next(limitMs: number = Number.POSITIVE_INFINITY): Promise<void> {
    if (!this.hasRung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, Math.min(this.pollMs, limitMs)));
        this.wake = () => {
          clearTimeout(timer);
          setTimeout(resolve, CALM_MS);
        };
      });
    }
    this.wake = undefined;
    this.hasRung = false;
  }

  close(): void {
    for (const watcher of this.watchers) watcher.close();
  }

  private ring(): void {
    this.hasRung = true;
    this.wake?.();
    this.wake = undefined;
  }
}
