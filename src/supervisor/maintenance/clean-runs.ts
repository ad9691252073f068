/** Retention of `runs/`: the files of an attempt are removed when every record about it would be gone too. */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { isRunsFolder, parseName, parseRun, runOf } from "../../core/names.ts";
import { isExpired, STAGED_MAX_AGE_MS } from "../../core/retention.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { nodeStorage } from "../../mailbox/files/node-storage.ts";
import { type CleanPass, type CleanRules, namesIn } from "./clean-pass.ts";

/** Removes old run directories. Those of running attempts stay, and so does everything with another kind of name. */
export function* cleanRuns(
  tree: StateTree,
  retention: Settings["retention"],
  rules: CleanRules,
): CleanPass {
  const days = Math.max(retention.outbox_days, retention.failed_days);
  let count = 0;
  for (const name of namesIn(tree.runs)) {
    if (!isRunsFolder(name)) {
      count += yield* sweepRun(tree, name, days, rules);
      continue;
    }
    let isEmpty = true;
    for (const run of namesIn(join(tree.runs, name))) {
      isEmpty = false;
      count += yield* sweepRun(tree, `${name}/${run}`, days, rules);
    }
    if (isEmpty && rules.isDryRun !== true) removeFolder(join(tree.runs, name), rules.nowMs);
    yield;
  }
  return count;
}

/** @param run path below `runs/` @returns how many were removed */
function* sweepRun(tree: StateTree, run: string, days: number, rules: CleanRules): CleanPass {
  const path = join(tree.runs, run);
  if (!isOld(path, days, rules.nowMs)) {
    yield;
    return 0;
  }
  // List it again for each run: a run that was given back long ago may start again.
  const live = listLive(tree);
  if (live === undefined || live.has(run)) return 0;
  if (rules.isDryRun === true) return 1;
  return (yield* removeTree(path)) ? 1 : 0;
}

function isOld(path: string, days: number, nowMs: number): boolean {
  if (parseRun(path.slice(path.lastIndexOf("/") + 1)) === undefined) return false;
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && isExpired(nowMs - stats.mtimeMs, days);
}

/** The run directories of all tasks in `processing/`; undefined when it cannot be listed: nothing is then removed. */
function listLive(tree: StateTree): Set<string> | undefined {
  try {
    const names = nodeStorage.list(join(tree.mailbox, "processing")).map(parseName);
    return new Set(names.flatMap((name) => (name === undefined ? [] : [runOf(name)])));
  } catch (error) {
    return systemCode(error) === "ENOENT" ? new Set() : undefined;
  }
}

/** Removes the folder of a day that has been empty for a while. An attempt that is about to use it makes it again. */
function removeFolder(path: string, nowMs: number): void {
  try {
    if (nowMs - fs.lstatSync(path).mtimeMs > STAGED_MAX_AGE_MS) fs.rmdirSync(path);
  } catch {
    // It is in use again.
  }
}
