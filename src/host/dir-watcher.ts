/**
 * Reports that a directory changed, and often which name. A report only means that the caller should look: the system loses events
 * in bursts, and watches can stop working. Only chokidar's watch is used. Its listing is switched off, because it would stat every
 * file of the directory once a second.
 */
import { FSWatcher } from "chokidar";
import { systemCode } from "../core/errors.ts";
import { EventFlood } from "./event-flood.ts";
import { tryStatOf } from "./regular-file.ts";

/**
 * A watch without listings: chokidar lists a directory only when its throttle allows it. Without the throttle it also sets no
 * timers, which would keep a process alive for a second after the watch is closed.
 */
class WatchOnly extends FSWatcher {
  override _throttle(): false {
    return false;
  }
}

export interface DirWatcherEvents {
  /** @param name the changed file, when it is known */
  onChange: (name: string | undefined) => void;
  /** Called once when the system gives no more watches and polling starts. */
  onFallback: (error: unknown) => void;
}

/** How often the directory is polled when it cannot be watched (ms). */
const POLL_MS = 100;
/** How long it is polled after a flood of events, before it is watched again (ms). */
const REST_MS = 2000;

export class DirWatcher {
  mode: "events" | "polling" = "events";
  private watcher: WatchOnly | undefined;
  private poll: NodeJS.Timeout | undefined;
  private rest: NodeJS.Timeout | undefined;
  private watchedKey = "";
  private polledKey = "";

  constructor(
    private readonly dir: string,
    private readonly events: DirWatcherEvents,
  ) {}

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
    const flood = new EventFlood();
    watcher.on("raw", (_event: string, path: string | null) => {
      this.events.onChange(path ?? undefined);
      if (flood.note()) this.restFromEvents();
    });
    watcher.on("error", (error) => this.fallBack(error));
    watcher.add(this.dir);
    this.watcher = watcher;
  }

  /** Call regularly: a watch on a directory that was replaced gets no more events. True when the watch was set again. */
  rearm(): boolean {
    // Without a watcher it is not started yet, stopped, or polling.
    if (this.watcher === undefined || this.dirKey() === this.watchedKey) return false;
    void this.watcher.close();
    this.start();
    return true;
  }

  stop(): void {
    void this.watcher?.close();
    this.watcher = undefined;
    clearInterval(this.poll);
    clearTimeout(this.rest);
  }

  /** Distinguishes a directory from its replacement, which may get the same inode number. */
  private dirKey(): string {
    const stats = tryStatOf(this.dir);
    return `${stats?.dev}.${stats?.ino}.${stats?.birthtimeMs}`;
  }

  private fallBack(error: unknown): void {
    const code = systemCode(error);
    if (code !== "ENOSPC" && code !== "EMFILE" && code !== "ENFILE" && code !== "ENOSYS") return;
    if (this.mode === "polling") return;
    this.stop();
    this.mode = "polling";
    this.startPoll();
    this.events.onFallback(error);
  }

  private restFromEvents(): void {
    this.stop();
    this.startPoll();
    this.rest = setTimeout(() => {
      clearInterval(this.poll);
      this.start();
      // Events between the last poll and the new watch are lost.
      this.events.onChange(undefined);
    }, REST_MS);
  }

  private startPoll(): void {
    this.poll = setInterval(() => {
      const stats = tryStatOf(this.dir);
      const key = `${stats?.ino}.${stats?.mtimeMs}.${stats?.ctimeMs}`;
      if (key !== this.polledKey) this.events.onChange(undefined);
      this.polledKey = key;
    }, POLL_MS);
  }
}
