/**
 * Sweeps files that a process left in a `.tmp` when it died while replacing a document, the locks of dead processes, and documents
 * of dead workers that cannot be read.
 */
import fs from "node:fs";
import { join } from "node:path";
import { STAGED_MAX_AGE_MS } from "../../core/retention.ts";
import { workerOf } from "../../core/saved-documents.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { readDocument } from "../../host/documents.ts";
import { isGone } from "../../host/identity.ts";
import { listDir } from "../../host/list-dir.ts";
import { removeFile } from "./clean-pass.ts";

/** Staging a document takes less than this (ms), also in a process of another host or container, which we cannot check by its pid. */
const STAGING_MS = 60_000;
/** `<document>.<pid>`, and the ending that write-file-atomic adds. */
const STAGED = /\.(\d+)(?:\.\d+)?$/;

/**
 * @param nowMs by the clock of the file system (`Sweep.nowMs`)
 * @returns how many files were removed (or would be)
 */
export function cleanDocuments(tree: StateTree, nowMs: number, isDryRun = false): number {
  let count = 0;
  for (const dir of stagingDirs(tree)) {
    for (const name of listDir(dir)) {
      const path = join(dir, name);
      const stats = fs.lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const ageMs = nowMs - stats.mtimeMs;
      if (stats.isDirectory()) {
        // A live holder of a lock touches it all the time.
        if (!name.endsWith(".lock") || ageMs <= STAGED_MAX_AGE_MS) continue;
        if (isDryRun || removeLock(path)) count++;
        continue;
      }
      if (!stats.isFile()) continue;
      const pid = Number(STAGED.exec(name)?.[1]);
      const isOfDead = pid > 0 && ageMs > STAGING_MS && isGone(pid);
      if (!isOfDead && ageMs <= STAGED_MAX_AGE_MS) continue;
      if (isDryRun || removeFile(path)) count++;
    }
  }
  for (const path of unreadableWorkers(tree, nowMs)) if (isDryRun || removeFile(path)) count++;
  return count;
}

/**
 * Documents that a power cut, or a full disk, has left empty or incomplete. They do not show which process they belong to, so we
 * cannot check whether it is dead. A live worker touches its own document all the time.
 */
function unreadableWorkers({ workers }: StateTree, nowMs: number): string[] {
  return listDir(workers)
    .filter((name) => name.endsWith(".json"))
    .map((name) => join(workers, name))
    .filter((path) => {
      const stats = fs.lstatSync(path, { throwIfNoEntry: false });
      const isOld = stats?.isFile() === true && nowMs - stats.mtimeMs > STAGED_MAX_AGE_MS;
      return isOld && readDocument(path, workerOf) === undefined;
    });
}

/** False when another process was faster, or the file is no lock. */
function removeLock(path: string): boolean {
  try {
    fs.rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}

/** The staging directories of the tree and of each directory in it. The trays of the mailboxes have their own sweep and rules. */
function stagingDirs(tree: StateTree): string[] {
  const mailboxes = new Set([tree.mailbox, tree.control]);
  const dirs = listDir(tree.dir).map((name) => join(tree.dir, name));
  return [tree.dir, ...dirs.filter((dir) => !mailboxes.has(dir))].map((dir) => join(dir, ".tmp"));
}
