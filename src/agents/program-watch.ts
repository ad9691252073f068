/** Watches a program while it runs: how much it writes, and what it uses. */
import { setImmediate as turn } from "node:timers/promises";
import { roomOf, type Space } from "../core/free-space.ts";
import { addUsage, type RunUsage } from "../core/run-usage.ts";
import { spaceOf } from "../host/disk-room.ts";
import { type ProcessUsage, readUsage } from "../host/process-usage.ts";
import { cutFolder, FolderCount, type Usage } from "./run-folder.ts";

/** Why a run must stop: it wrote more than its limit, or it writes while the disk is nearly full. */
export type OutputFault = "output" | "room";

export interface OutputWatchParts {
  /** Directory of the run. */
  dir: string;
  /** The bytes that we put there ourselves. They do not count against the limit of the run. */
  ownBytes: number;
  /** Setting `output_bytes_max`. */
  bytesMax: number;
  /** Setting `free_bytes_min`; with 0 the disk is not watched. */
  freeBytesMin: number;
  /** Called once, when the run must stop. */
  onFault: (fault: OutputFault) => void;
}

/** A program that writes faster than this can pass its limit between two looks (bytes per ms; this is 1 GiB/s). */
const BYTES_PER_MS = 1024 * 1024;
const LOOK_MS = { min: 10, max: 1000 } as const;
/** With more runs than this, looks at each run are less frequent. */
const QUICK_RUNS_MAX = 16;
/** Looking takes at most this part of the time. */
const LOOKING_PART = 1 / 50;
/** The next slice of a folder with many files comes sooner. */
const SLICING_PART = 1 / 5;
/** A folder with more files counts as too large, because each look goes through all of them. */
export const OUTPUT_FILES_MAX = 20_000;
/** When the disk is nearly full, all runs of a process together may write this part of what is left. */
const LEFT_PART = 1 / 2;

/** A run that writes less than this (bytes) does not fill a disk. It goes on even when nothing is left. */
const FEW_BYTES = 4096;
/** Our own files, and the logs. */
const FIRST_FILES = 5;

let watchCount = 0;

/**
 * Watches how much a run has written into its logs and its folder. Programs write straight into files, so it looks more often when
 * a limit is near: the limit of the run, or the end of the disk.
 */
export class OutputWatch {
  private readonly deps: OutputWatchParts;
  private readonly startedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private count: FolderCount | undefined;
  private isClosed = false;
  /** The size of the folder when the disk last had room. */
  private before: Usage;
  fault: OutputFault | undefined;
  /** The disk was nearly full at one of the looks: what the program wrote may be missing. */
  wasShort = false;

  constructor(parts: OutputWatchParts) {
    this.deps = parts;
    this.before = { bytes: parts.ownBytes, files: FIRST_FILES };
    watchCount++;
    this.timer = setTimeout(() => this.look(), this.waitMs(0, undefined));
  }

  /** Looks a last time when the run has ended, because a short run may have had no look before. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    watchCount--;
    clearTimeout(this.timer);
    this.count?.close();
    const mayBeOver = (performance.now() - this.startedMs) * 4 * BYTES_PER_MS > this.deps.bytesMax;
    if (this.fault !== undefined || !mayBeOver) return;
    const count = new FolderCount(this.deps.dir);
    while (!count.goOn() && !this.isOver(count.usage)) await turn();
    count.close();
    if (this.isOver(count.usage)) this.fault = "output";
  }

  /** Cuts the files of a fast program that passed its limit between two looks. @param logs paths: these are cut first */
  cut(logs: readonly string[]): Promise<void> {
    const { dir, bytesMax, ownBytes } = this.deps;
    return cutFolder(dir, bytesMax + ownBytes, logs, OUTPUT_FILES_MAX);
  }

  private look(): void {
    const fromMs = performance.now();
    this.count ??= new FolderCount(this.deps.dir);
    const isAll = this.count.goOn();
    const { usage } = this.count;
    const space = this.deps.freeBytesMin > 0 ? spaceOf(this.deps.dir) : undefined;
    if (this.isOver(usage)) this.fault = "output";
    else if (isAll && this.isShort(usage, space)) this.fault = "room";
    if (this.fault !== undefined) {
      this.count.close();
      this.deps.onFault(this.fault);
      return;
    }
    const tookMs = performance.now() - fromMs;
    if (isAll) this.count = undefined;
    const ms = isAll
      ? Math.max(this.waitMs(usage.bytes, space), tookMs / LOOKING_PART)
      : tookMs / SLICING_PART;
    this.timer = setTimeout(() => this.look(), ms);
  }

  private isOver({ bytes, files }: Usage): boolean {
    return bytes > this.deps.bytesMax + this.deps.ownBytes || files > OUTPUT_FILES_MAX;
  }

  /** Whether the disk is nearly full and the run wrote more than its share of the space that is left. */
  private isShort(usage: Usage, space: Space | undefined): boolean {
    if (space === undefined) return false;
    const room = roomOf(space, this.deps.freeBytesMin);
    if (room.bytes >= 0 && room.files >= 0) {
      this.before = usage;
      return false;
    }
    this.wasShort = true;
    const share = LEFT_PART / watchCount;
    return (
      (room.bytes < 0 &&
        usage.bytes - this.before.bytes > Math.max(FEW_BYTES, space.free * share)) ||
      (room.files < 0 && usage.files - this.before.files > space.freeFiles * share)
    );
  }

  /** The time until the run could reach a limit (ms). */
  private waitMs(bytes: number, space: Space | undefined): number {
    const least = LOOK_MS.min * Math.max(1, watchCount / QUICK_RUNS_MAX);
    const room = space === undefined ? undefined : roomOf(space, this.deps.freeBytesMin);
    const left = Math.min(this.deps.bytesMax - bytes, room?.bytes ?? Number.POSITIVE_INFINITY);
    return Math.min(LOOK_MS.max, Math.max(least, left / BYTES_PER_MS));
  }
}

const USAGE_LOOK_MS = { min: 100, max: 5000 } as const;
/** At most this part of a program's run time passes after the last look, up to `USAGE_LOOK_MS.max`. */
const UNSEEN_PART = 1 / 10;
/** Looking takes at most this part of the time. */
const USAGE_LOOKING_PART = 1 / 100;

/**
 * Looks from time to time at what a running program uses. After its end it is too late, because Node does not report what a child has
 * used. So the figures are those of the last look, and a program that ends before the first look has none.
 */
export class UsageWatch {
  private readonly startedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private seen: ProcessUsage | undefined;

  /** @param sum gets the program's usage added at its end */
  constructor(
    private readonly pid: number,
    private readonly sum: RunUsage,
  ) {
    this.timer = setTimeout(() => this.lookOn(), USAGE_LOOK_MS.min);
  }

  /** Call this before the program is ended from outside. */
  look(): void {
    let now: ProcessUsage | undefined;
    try {
      now = readUsage(this.pid);
    } catch {
      // No descriptors are left; the next look may see it.
    }
    if (now === undefined) return;
    const { cpuMs = 0, memoryBytes = 0 } = this.seen ?? {};
    // A process that leaves the tree takes its time with it, so keep the greatest values.
    this.seen = {
      cpuMs: Math.max(cpuMs, now.cpuMs),
      memoryBytes: Math.max(memoryBytes, now.memoryBytes),
    };
  }

  /** Call once, when the program has ended. */
  close(): void {
    clearTimeout(this.timer);
    if (this.seen === undefined) return;
    const { cpuMs, memoryBytes } = this.seen;
    addUsage(this.sum, { cpu_ms: cpuMs, peak_memory_bytes: memoryBytes });
  }

  private lookOn(): void {
    const fromMs = performance.now();
    this.look();
    // Without /proc no look sees anything, so stop.
    if (this.seen === undefined) return;
    const nowMs = performance.now();
    const dueMs = Math.max(USAGE_LOOK_MS.min, (nowMs - this.startedMs) * UNSEEN_PART);
    const ms = Math.max(Math.min(USAGE_LOOK_MS.max, dueMs), (nowMs - fromMs) / USAGE_LOOKING_PART);
    this.timer = setTimeout(() => this.lookOn(), ms);
  }
}
