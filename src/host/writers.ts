/** Which files somebody has open for writing. Linux only; elsewhere the answer is "nobody". */
import fs from "node:fs";

const O_ACCMODE = 3;
/** One look at all processes serves for this long (ms). */
const FRESH_MS = 250;

let known = new Set<string>();
let lookedAtMs = Number.NEGATIVE_INFINITY;

/** True when a process that we may look into has this very file open for writing. */
export function hasWriter(file: { dev: number; ino: number }): boolean {
  const nowMs = performance.now();
  if (nowMs - lookedAtMs > FRESH_MS) {
    known = openForWriting();
    lookedAtMs = performance.now();
  }
  return known.has(`${file.dev}.${file.ino}`);
}

function openForWriting(): Set<string> {
  const found = new Set<string>();
  for (const pid of list("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    for (const fd of list(`/proc/${pid}/fd`)) {
      try {
        const stats = fs.statSync(`/proc/${pid}/fd/${fd}`);
        if (!stats.isFile()) continue;
        const flags =
          /^flags:\s*([0-7]+)/m.exec(fs.readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1"))?.[1] ??
          "0";
        if ((Number.parseInt(flags, 8) & O_ACCMODE) !== 0) found.add(`${stats.dev}.${stats.ino}`);
      } catch {
        // Closed meanwhile, or not ours to see.
      }
    }
  }
  return found;
}

function list(path: string): string[] {
  try {
    return fs.readdirSync(path);
  } catch {
    return [];
  }
}
