/** Retention of the files that coding agents leave besides their runs: old logs, and sessions that no task continues. */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { parseName } from "../../core/names.ts";
import { isExpired } from "../../core/retention.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { nodeStorage } from "../../mailbox/files/node-storage.ts";
import { type CleanPass, type CleanRules, namesIn, removeFile } from "./clean-pass.ts";

/** `<id>@<submission>`, followed by `.<phase>` for a phase of a node, by `.check` for the text of a failed check, or by `.crashes`. */
const SESSION = /^(.+@[a-z0-9]+)(?:\.[a-z_]+)?\.(?:json|txt)$/;

export function* cleanAgents(
  tree: StateTree,
  { outbox_days, failed_days, journal_days }: Settings["retention"],
  rules: CleanRules,
): CleanPass {
  const days = Math.max(outbox_days, failed_days);
  let count = 0;
  for (const name of namesIn(tree.sessions)) {
    const task = SESSION.exec(name)?.[1];
    const path = join(tree.sessions, name);
    if (task !== undefined && isOld(path, days, rules) && !isInProcessing(tree, task))
      count += remove(path, rules);
    yield;
  }
  for (const name of namesIn(tree.logs)) {
    const path = join(tree.logs, name);
    if (name.endsWith(".jsonl") && isOld(path, journal_days, rules)) count += remove(path, rules);
    yield;
  }
  return count;
}

function isOld(path: string, days: number, { nowMs }: CleanRules): boolean {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && isExpired(nowMs - stats.mtimeMs, days);
}

/** True also when the answer cannot be found. */
function isInProcessing(tree: StateTree, task: string): boolean {
  try {
    return nodeStorage.list(join(tree.mailbox, "processing")).some((file) => {
      const name = parseName(file);
      return name !== undefined && `${name.id}@${name.submission}` === task;
    });
  } catch (error) {
    return systemCode(error) !== "ENOENT";
  }
}

function remove(path: string, { isDryRun }: CleanRules): number {
  return isDryRun === true || removeFile(path) ? 1 : 0;
}
