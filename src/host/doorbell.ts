/**
 * Tells that something happened in a directory, and perhaps to which name. A hint that a look is due, never a fact:
 * events are lost in bursts, and watchers go deaf. chokidar is used for its watch alone; its own listing is switched
 * off, because it would stat every file of the directory once a second.
 */
import fs from "node:fs";
import { FSWatcher } from "chokidar";
import { systemCode } from "../core/errors.ts";

/**
 * A watch without listings: where its throttle gives no leave, chokidar reads no directory. Nor does it set the timers
 * behind that leave, which would keep a process alive for a second after the watch is closed.
 */
class WatchOnly extends FSWatcher {
  override _throttle(): false {
    return false;
  }
}

export interface DoorbellEvents {
  /** @param name the file concerned, when it is known */
  onRing: (name: string | undefined) => void;
  /** The system gives no more watches: from now on the directory is polled. */
  onFallback: (error: unknown) => void;
}

/** How often a directory is looked at where no watch can be had (ms). */
const POLL_MS = 100;

export class Doorbell {
  mode: "events" | "polling" = "events";
  private readonly dir: string;
  private readonly events: DoorbellEvents;
  private watcher: WatchOnly | undefined;
  private poll: NodeJS.Timeout | undefined;
  private watchedKey = "";
  private polledKey = "";

  constructor(dir: string, events: DoorbellEvents) {
    this.dir = dir;
    this.events = events;
  }

  start(): void {
    if (this.mode === "polling") return;
    this.watchedKey = this.dirKey();
    const watcher = new WatchOnly({
      depth: 0,
      atomic: false,
      ignoreInitial: true,
      ignorePermissionErrors: true,
      persistent: true,
      ignored: (path: string) => path !== this.dir,
    });
    watcher.on("raw", (_event: string, path: string | null) =>
      this.events.onRing(path ?? undefined),
    );
    watcher.on("error", (error) => this.fallBack(error));
    watcher.add(this.dir);
    this.watcher = watcher;
  }

  /** Call now and then: a watch on a directory that was replaced is deaf for ever. True when it was set anew. */
  rearm(): boolean {
    // Not started yet, or stopped: then there is no watch to set anew.
    if (this.watcher === undefined || this.dirKey() === this.watchedKey) return false;
    void this.watcher.close();
    this.start();
    return true;
  }

  stop(): void {
    void this.watcher?.close();
    this.watcher = undefined;
    clearInterval(this.poll);
  }

  /** Tells one directory of this name from the next, which may well get the same inode number. */
  private dirKey(): string {
    const stats = fs.statSync(this.dir, { throwIfNoEntry: false });
    return `${stats?.dev}.${stats?.ino}.${stats?.birthtimeMs}`;
  }

  private fallBack(error: unknown): void {
    const code = systemCode(error);
    if (code !== "ENOSPC" && code !== "EMFILE" && code !== "ENFILE" && code !== "ENOSYS") return;
    if (this.mode === "polling") return;
    this.mode = "polling";
    void this.watcher?.close();
    this.watcher = undefined;
    this.poll = setInterval(() => {
      const stats = fs.statSync(this.dir, { throwIfNoEntry: false });
      const key = `${stats?.ino}.${stats?.mtimeMs}.${stats?.ctimeMs}`;
      if (key !== this.polledKey) this.events.onRing(undefined);
      this.polledKey = key;
    }, POLL_MS);
    this.events.onFallback(error);
  }
}
