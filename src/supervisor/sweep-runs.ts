/** Retention of `runs/`: what an attempt left behind goes when any record about it would be gone too. */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { parseName, parseRun, runOf } from "../core/names.ts";
import { isExpired } from "../core/retention.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { nodeStorage } from "../mailbox/node-storage.ts";
import type { Walk } from "../mailbox/storage.ts";

/** One pass over the run directories that can be taken in slices: to remove them takes long when there are many. */
export class RunSweep {
  /** How many were removed (or would be). */
  count = 0;
  /** As the file system stamps files (`Sweep.nowMs`). */
  readonly nowMs: number;
  private readonly tree: StateTree;
  private readonly days: number;
  private readonly isDryRun: boolean;
  private walk: Walk | undefined;

  constructor(
    tree: StateTree,
    retention: Settings["retention"],
    nowMs: number,
    isDryRun: boolean = false,
  ) {
    this.tree = tree;
    this.days = Math.max(retention.outbox_days, retention.failed_days);
    this.nowMs = nowMs;
    this.isDryRun = isDryRun;
  }

  /**
   * Removes old run directories until the time is up; those of running attempts, and whatever is not named like one, stay.
   * @returns true when the pass is over
   */
  next(isTimeUp: () => boolean): boolean {
    try {
      this.walk ??= nodeStorage.walk(this.tree.runs);
      // Anew for each slice: a run may go on that was given back long ago.
      let live: ReadonlySet<string> | undefined;
      for (let [name] = this.walk.next(1); name !== undefined; [name] = this.walk.next(1)) {
        if (this.isOld(name)) {
          live ??= this.listLive();
          if (!live.has(name) && this.remove(name)) this.count++;
        }
        if (isTimeUp()) return false;
      }
    } catch {
      // What cannot be listed does not tell what may go: a later pass sees.
    }
    this.close();
    return true;
  }

  close(): void {
    this.walk?.close();
    this.walk = undefined;
  }

  private isOld(name: string): boolean {
    if (parseRun(name) === undefined) return false;
    const stats = fs.lstatSync(join(this.tree.runs, name), { throwIfNoEntry: false });
    return stats?.isDirectory() === true && isExpired(this.nowMs - stats.mtimeMs, this.days);
  }

  /** The run directories of all that is in `processing/`. */
  private listLive(): Set<string> {
    const processing = join(this.tree.mailbox, "processing");
    try {
      return new Set(
        nodeStorage
          .list(processing)
          .map(parseName)
          .flatMap((name) => (name === undefined ? [] : [runOf(name)])),
      );
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      return new Set();
    }
  }

  /** False for what cannot be removed, as files that a container has left as root: it stays, and the others go. */
  private remove(name: string): boolean {
    if (this.isDryRun) return true;
    try {
      fs.rmSync(join(this.tree.runs, name), { recursive: true, force: true });
      return true;
    } catch {
      return false;
    }
  }
}

/** A whole pass at once. @returns how many were removed (or would be) */
export function sweepRuns(...pass: ConstructorParameters<typeof RunSweep>): number {
  const sweep = new RunSweep(...pass);
  sweep.next(() => false);
  return sweep.count;
}
