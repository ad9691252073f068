/**
 * Finds the files that any process has open for writing. Only where there is `/proc`; elsewhere it finds no file. A machine may have many processes,
 * so it looks at them in slices, and all callers share one look.
 */
import fs from "node:fs";
import { hostKind } from "./host-kind.ts";
import { listDir } from "./list-dir.ts";

const O_ACCMODE = 3;
/** The result of a look is used for this long (ms). */
const FRESH_MS = 250;
/** After a look, the pause is this many times as long as the look took, at most `FRESH_MS`. */
const REST = 3;
/** A slice of a look blocks the event loop for about this long (ms). */
const SLICE_MS = 3;

let known = new Set<string>();
let lookedAtMs = Number.NEGATIVE_INFINITY;
let beganAtMs = Number.NEGATIVE_INFINITY;
let nextLookMs = Number.NEGATIVE_INFINITY;
let isLooking = false;

/**
 * True when a process that this one may inspect has the file open for writing. "unsure": a look is running, ask again.
 * @param sinceMs looks that began before this time do not count: they may have passed a process that opened the file later
 *   (monotonic ms)
 */
export function hasWriter(file: { dev: number; ino: number }, sinceMs: number): boolean | "unsure" {
  const nowMs = performance.now();
  const isFresh = !isLooking && nowMs - lookedAtMs <= FRESH_MS;
  if (isFresh && beganAtMs >= sinceMs) return known.has(`${file.dev}.${file.ino}`);
  if (!isLooking && nowMs >= nextLookMs) {
    isLooking = true;
    beganAtMs = nowMs;
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
    nextLookMs = lookedAtMs + Math.min(REST * (lookedAtMs - beganAtMs), FRESH_MS);
    isLooking = false;
    return;
  }
  setImmediate(continueLook, found, look);
}

/** Fills `found`; yields after each process and each open file. */
function* openForWriting(found: Set<string>): Generator<undefined> {
  if (hostKind() !== "proc") return;
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
    // The file was closed since, or this process may not see it.
  }
}
