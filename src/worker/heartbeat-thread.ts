/**
 * The heartbeat. It has its own thread, so that no handler can block it. It lists the directory to find the leases of this process:
 * every claimed name that begins with our owner prefix. It knows nothing of tasks.
 */
import fs from "node:fs";
import { join } from "node:path";
import { workerData } from "node:worker_threads";
import { HANG_SIGNAL, MainBeat, MainWatch } from "./main-beat.ts";

export interface HeartbeatData {
  processingDir: string;
  ownerPrefix: string;
  workerFile: string;
  /** How often it renews the leases, and looks whether the main thread moves. */
  beatMs: number;
  /** When the main thread has not moved for this long, the process is ended (ms); 0 = never. */
  stallMs: number;
  /** The memory of a `MainBeat`. */
  main: SharedArrayBuffer;
  /** One Float64, on the clock of `process.hrtime` (ms): at this time the process is killed, because a handler blocks it; 0 = never. */
  deadline: SharedArrayBuffer;
  /** One Int32, counted up and notified when a deadline is set and there was none before. */
  alarm: SharedArrayBuffer;
}

const data = workerData as HeartbeatData;
const deadline = new Float64Array(data.deadline);
const alarm = new Int32Array(data.alarm);
const mainWatch = new MainWatch(new MainBeat(data.main), data.stallMs, data.beatMs);
const mark = `~w-${data.ownerPrefix}-`;
/** How often a distant deadline is checked, and so how late it may be noticed (ms). */
const DEADLINE_LOOK_MS = 500;
const DEADLINE_LATE_MS = 10;
/** A function of a task may have asked for this signal: then the process is killed so much later (ms). */
const SIGNAL_MS = 500;

function beat(): void {
  const now = Date.now() / 1000;
  touch(data.workerFile, now);
  let names: string[];
  try {
    names = fs.readdirSync(data.processingDir);
  } catch {
    return;
  }
  for (const name of names) if (name.includes(mark)) touch(join(data.processingDir, name), now);
}

/** The name may be gone because the task was settled or taken: the main thread finds out. */
function touch(path: string, seconds: number): void {
  try {
    fs.utimesSync(path, seconds, seconds);
  } catch {
    // The file is gone: there is no lease to renew.
  }
}

/** @returns how long the deadline need not be checked (ms) */
function lookAtDeadline(): number {
  const at = deadline[0] ?? 0;
  if (at === 0) return Number.POSITIVE_INFINITY;
  const leftMs = at - Number(process.hrtime.bigint()) / 1e6;
  // The handler blocks the event loop past its time limit. Only the end of the process stops it; recovery then takes over.
  if (leftMs < 0) process.kill(process.pid, "SIGKILL");
  return Math.min(leftMs + DEADLINE_LATE_MS, DEADLINE_LOOK_MS);
}

/** Ends the process. Its signal says why: see `HANG_SIGNAL`. If that does not end it, it is killed. */
function endHanging(): void {
  process.kill(process.pid, HANG_SIGNAL);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SIGNAL_MS);
  process.kill(process.pid, "SIGKILL");
}

// The thread waits here and not in an event loop: it wakes only for a beat and for a deadline.
for (let beatAtMs = performance.now() + data.beatMs; ; ) {
  const seen = Atomics.load(alarm, 0);
  const nowMs = performance.now();
  if (nowMs >= beatAtMs) {
    beat();
    if (mainWatch.isHanging(nowMs)) endHanging();
    beatAtMs = nowMs + data.beatMs;
  }
  const waitMs = Math.min(beatAtMs - performance.now(), lookAtDeadline());
  // Returns at once when the alarm was raised since it was read.
  Atomics.wait(alarm, 0, seen, Math.max(0, waitMs));
}
