/**
 * The task that works in a worktree: the one that it was made for, or one that continues it. A file in the git directory of the
 * worktree names the continuing task. Until the task that uses it has ended, no other task gets it.
 */
import fs from "node:fs";
import { join } from "node:path";
import { isId } from "../../core/names.ts";
import { tryReadText, writeRegularText } from "../../host/regular-file.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { findInProcessing, findWaiting } from "../../mailbox/find/locate.ts";

const NAME = "mailchute-user";

/** Another task works in the worktree. */
export class WorktreeTaken extends Error {
  constructor(path: string, user: string) {
    super(`the worktree ${path} is in use by the task ${user}`);
  }
}

/** The task that uses the worktree of the task `id`, or used it last. */
export function userOf(gitDir: string, id: string): string {
  const user = tryReadText(join(gitDir, NAME));
  // A crash may leave half of the file. Then the run that wrote it had not begun.
  return user !== undefined && isId(user) ? user : id;
}

/** Call it in turn. */
export function noteUser(gitDir: string, id: string, user: string): void {
  const path = join(gitDir, NAME);
  if (userOf(gitDir, id) === user) return;
  if (user === id) fs.rmSync(path, { force: true });
  else writeRegularText(path, user, true);
}

/** Whether the task waits or runs. Looks twice, because a task that goes back into the inbox may be missed once. */
export function isUnfinished(trays: Trays, id: string): boolean {
  const look = (): boolean =>
    findWaiting(trays, id) !== undefined || findInProcessing(trays, id) !== undefined;
  return look() || look();
}
