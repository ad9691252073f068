/** Finds processes that the machine lets wait: their beats are late, and that is no fault of theirs. Linux tells for how long they wait. */
import fs from "node:fs";

/** A process that waits for so much of the time is late. */
const SHARE = 0.5;

export class Lateness {
  private readonly before = new Map<number, { atMs: number; waitedMs: number }>();

  /** @returns since when it is late; undefined when it is not. @param nowMs epoch ms */
  since(pid: number, nowMs: number): number | undefined {
    const waitedMs = waitedMsOf(pid);
    if (waitedMs === undefined) return undefined;
    const before = this.before.get(pid);
    this.before.set(pid, { atMs: nowMs, waitedMs });
    if (before === undefined) return undefined;
    return waitedMs - before.waitedMs > SHARE * (nowMs - before.atMs) ? before.atMs : undefined;
  }
}

/** How long its first thread has waited for a processor. */
function waitedMsOf(pid: number): number | undefined {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return undefined;
  }
}
