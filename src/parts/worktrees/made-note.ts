/**
 * A note in the git directory of a worktree. It says that the worktree is ready: checked out and set up. It is removed with the
 * worktree. Without the note the worktree is made ready again, which overwrites nothing that a run has left.
 */

import fs from "node:fs";
import { join } from "node:path";
import { isText, oneOf, recordOf, type Shape, shape } from "../../core/shape.ts";
import type { WatchedSettings } from "../../git/settings-watch.ts";
import { readDocument } from "../../host/documents.ts";
import { replaceDocument } from "../../host/replace-document.ts";

export interface MadeNote {
  v: 1;
  task_id: string;
  /** Size and time of each ignored file that `setup` made, by path, if an older version has made the worktree: see `files-index.ts`. */
  ignored: Readonly<Record<string, string>>;
  /** What older versions compare with. */
  settings: WatchedSettings;
}

const made = shape({ v: oneOf(1), ignored: recordOf(isText) }) as Shape<MadeNote>;
const NAME = "mailchute.json";

export function readMade(gitDir: string): MadeNote | undefined {
  return readDocument(join(gitDir, NAME), made);
}

export function writeMade(gitDir: string, note: MadeNote): void {
  replaceDocument(join(gitDir, NAME), note, { stagingDir: gitDir, isDurable: true });
}

/** Size and time of a file, which change when it is written; "" when it is missing. */
export function stampOf(path: string): string {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.size} ${stats.mtimeMs}`;
}
