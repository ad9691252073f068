/** Retention of `runs/`: what an attempt left behind goes when any record about it would be gone too. */
import fs from "node:fs";
import { join } from "node:path";
import { parseName, parseRun, runOf } from "../core/names.ts";
import { isExpired } from "../core/retention.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import { listDir } from "../host/list-dir.ts";

/**
 * Removes old run directories; those of running attempts, and whatever is not named like one, stay.
 * @param nowMs as the file system stamps files (`Sweep.nowMs`)
 * @returns how many were removed (or would be)
 */
export function sweepRuns(
  tree: StateTree,
  retention: Settings["retention"],
  nowMs: number,
  isDryRun = false,
): number {
  const days = Math.max(retention.outbox_days, retention.failed_days);
  const live = new Set(listDir(join(tree.mailbox, "processing")).map(liveRun));
  let count = 0;
  for (const name of listDir(tree.runs)) {
    if (parseRun(name) === undefined || live.has(name)) continue;
    const path = join(tree.runs, name);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true || !isExpired(nowMs - stats.mtimeMs, days)) continue;
    if (isDryRun || removed(path)) count++;
  }
  return count;
}

/** False for what cannot be removed, as files that a container has left as root: it stays, and the others go. */
function removed(path: string): boolean {
  try {
    fs.rmSync(path, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}

function liveRun(file: string): string | undefined {
  const name = parseName(file);
  return name === undefined ? undefined : runOf(name);
}
