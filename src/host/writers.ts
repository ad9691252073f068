/**
 * Which files somebody has open for writing. Linux only; elsewhere the answer is "nobody". A machine may have many
 * processes, so they are looked at in slices, one look for all who ask.
 */
import fs from "node:fs";
import { listDir } from "./list-dir.ts";

const O_ACCMODE = 3;
/** One look at all processes serves for this long (ms). */
const FRESH_MS = 250;
/** A slice of a look blocks the event loop for about this long (ms). */
const SLICE_MS = 3;

let known = new Set<string>();
let lookedAtMs = Number.NEGATIVE_INFINITY;
let isLooking = false;

/** True when a process that we may look into has this very file open for writing. "unsure": a look is under way, ask again. */
export function hasWriter(file: { dev: number; ino: number }): boolean | "unsure" {
  if (performance.now() - lookedAtMs <= FRESH_MS) return known.has(`${file.dev}.${file.ino}`);
  if (!isLooking) {
    isLooking = true;
    const found = new Set<string>();
    continueLook(found, openForWriting(found));
  }
  return "unsure";
}

function continueLook(found: Set<string>, look: Iterator<undefined>): void {
  const untilMs = performance.now() + SLICE_MS;
  while (performance.now() < untilMs) {
    if (look.next().done !== true) continue;
    known = found;
    lookedAtMs = performance.now();
    isLooking = false;
    return;
  }
  setImmediate(continueLook, found, look);
}

/** Fills `found`; gives way after each process and each open file. */
function* openForWriting(found: Set<string>): Generator<undefined> {
  for (const pid of listDir("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    for (const fd of listDir(`/proc/${pid}/fd`)) {
      noteWriter(found, pid, fd);
      yield;
    }
    yield;
  }
}

function noteWriter(found: Set<string>, pid: string, fd: string): void {
  try {
    const stats = fs.statSync(`/proc/${pid}/fd/${fd}`);
    if (!stats.isFile()) return;
    const info = fs.readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1");
    const flags = /^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? "0";
    if ((Number.parseInt(flags, 8) & O_ACCMODE) !== 0) found.add(`${stats.dev}.${stats.ino}`);
  } catch {
    // Closed meanwhile, or not ours to see.
  }
}
