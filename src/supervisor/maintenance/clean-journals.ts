/** Retention of rotated journals: events, leases, alerts, and the history of kv; and of the journals of costs of earlier days. */
import fs from "node:fs";
import { isExpired } from "../../core/retention.ts";
import type { Settings } from "../../core/settings.ts";
import { costsOf, kvHistoryOf, type StateTree } from "../../core/state-tree.ts";
import { filesOfDays } from "../../journal/daily.ts";
import { rotatedOf } from "../../journal/rotated.ts";
import { type CleanPass, type CleanRules, removeFile } from "./clean-pass.ts";

/** The last rotated file of each journal stays: while the new file is short, kv and other readers need its end. */
export function* cleanJournals(
  tree: StateTree,
  { journal_days, journal_bytes_max }: Settings["retention"],
  rules: CleanRules,
): CleanPass {
  let count = 0;
  let bytes = 0;
  const kept: Rotated[] = [];
  const hasGone = (path: string): boolean => rules.isDryRun === true || removeFile(path);
  const journals = [tree.events, tree.leases, tree.alerts, kvHistoryOf(tree)].map(rotatedOf);
  for (const rotated of [...journals, filesOfDays(costsOf(tree))]) {
    for (const [n, old] of rotated.entries()) {
      const stats = fs.lstatSync(old, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const isLast = n === rotated.length - 1;
      if (!isLast && isExpired(rules.nowMs - stats.mtimeMs, journal_days) && hasGone(old)) count++;
      else {
        bytes += stats.size;
        if (!isLast) kept.push({ path: old, size: stats.size, mtimeMs: stats.mtimeMs });
      }
      yield;
    }
    yield;
  }
  for (const { path, size } of kept.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (bytes <= journal_bytes_max) break;
    if (hasGone(path)) {
      count++;
      bytes -= size;
    }
    yield;
  }
  return count;
}

interface Rotated {
  path: string;
  size: number;
  mtimeMs: number;
}
