/** Waits for a change in a few directories: by file events where the system has them, and always by a slow poll. */
import fs from "node:fs";
import { EventFlood } from "./event-flood.ts";

/** Events can get lost, so the caller looks again after this time at the latest. */
const POLL_MS = 500;
/** Events that are this close together count as one. */
const CALM_MS = 20;

export class ChangeSignal {
  private readonly watchers: fs.FSWatcher[] = [];
  private wake: (() => void) | undefined;
  private hasChanged = false;

  constructor(
    paths: readonly string[],
    private readonly pollMs: number = POLL_MS,
  ) {
    for (const path of new Set(paths)) {
      try {
        const flood = new EventFlood();
        const watcher = fs.watch(path, { persistent: false }, () => {
          this.ring();
          if (flood.note()) watcher.close();
        });
        // No watches are left, the directory is gone, or events came in a flood: the poll continues.
        watcher.on("error", () => watcher.close());
        this.watchers.push(watcher);
      } catch {
        // The directory is not there yet, or no watches are left: the poll finds the change.
      }
    }
  }

  /** Resolves after the next change, and at the latest after the poll time or `limitMs`. */
  async next(limitMs: number = Number.POSITIVE_INFINITY): Promise<void> {
    if (!this.hasChanged) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, Math.min(this.pollMs, limitMs)));
        this.wake = () => {
          clearTimeout(timer);
          setTimeout(resolve, CALM_MS);
        };
      });
    }
    this.wake = undefined;
    this.hasChanged = false;
  }

  /** Makes `next` return as after a change. */
  ring(): void {
    this.hasChanged = true;
    this.wake?.();
    this.wake = undefined;
  }

  close(): void {
    for (const watcher of this.watchers) watcher.close();
  }
}
