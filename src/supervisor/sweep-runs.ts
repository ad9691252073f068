/** Retention of `runs/`: what one attempt left behind goes when the longer-kept kind of record would be gone too. */
import fs from "node:fs";
import { join } from "node:path";
import { isExpired } from "../core/retention.ts";
import type { Settings } from "../core/settings.ts";

/** @returns how many run directories were removed (or would be) */
export function sweepRuns(
  runsDir: string,
  retention: Settings["retention"],
  wallMs: number,
  isDryRun = false,
): number {
  const days = Math.max(retention.outbox_days, retention.failed_days);
  let count = 0;
  let names: string[];
  try {
    names = fs.readdirSync(runsDir);
  } catch {
    return 0;
  }
  for (const name of names) {
    const path = join(runsDir, name);
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || !isExpired(wallMs - stats.mtimeMs, days)) continue;
    if (!isDryRun) fs.rmSync(path, { recursive: true, force: true });
    count++;
  }
  return count;
}
