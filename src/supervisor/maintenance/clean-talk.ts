/** Retention of `sessions/continued/` and `say/`: the holders of sessions and the messages to agents are kept as long as runs. */
import fs from "node:fs";
import { join } from "node:path";
import { parseName } from "../../core/names.ts";
import { isExpired } from "../../core/retention.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readDocument } from "../../host/documents.ts";
import { removeTree } from "../../host/remove-tree.ts";
import { nodeStorage } from "../../mailbox/files/node-storage.ts";
import { type CleanPass, type CleanRules, namesIn, removeFile } from "./clean-pass.ts";

/** Keeps everything of a task that waits or runs. */
export function* cleanTalk(
  tree: StateTree,
  retention: Settings["retention"],
  rules: CleanRules,
): CleanPass {
  const days = Math.max(retention.outbox_days, retention.failed_days);
  const isOld = (path: string): boolean => {
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    return stats !== undefined && isExpired(rules.nowMs - stats.mtimeMs, days);
  };
  let count = 0;
  const continued = join(tree.sessions, "continued");
  for (const name of namesIn(continued)) {
    yield;
    const path = join(continued, name);
    if (!name.endsWith(".json") || !isOld(path)) continue;
    const { task_id: id } = readDocument<{ task_id?: unknown }>(path) ?? {};
    if (isLive(tree, typeof id === "string" ? id : "")) continue;
    if (rules.isDryRun === true || removeFile(path)) count++;
  }
  const say = join(tree.dir, "say");
  for (const id of namesIn(say)) {
    yield;
    const path = join(say, id);
    if (id.startsWith(".") || !isOld(path) || isLive(tree, id)) continue;
    if (rules.isDryRun === true || (yield* removeTree(path))) count++;
  }
  return count;
}

/** True when the task waits or runs, and also when that cannot be known now. */
function isLive({ mailbox }: StateTree, id: string): boolean {
  const waits = (): boolean => nodeStorage.look(join(mailbox, "inbox", `${id}.json`)) !== undefined;
  const runs = (): boolean =>
    nodeStorage
      .list(join(mailbox, "processing"))
      .some((name) => parseName(name)?.id === id || name === `${id}.json`);
  try {
    // Check once more at the end, because the task may be put back in between.
    return waits() || runs() || waits();
  } catch {
    return true;
  }
}
