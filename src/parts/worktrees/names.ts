/** The names of the directory, the branch and the refs of a task's worktree. Pure. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import type { Settings } from "../../core/settings.ts";

/** Work lands on `mailchute/integration` by default, so no task may have that as its branch. */
const INTEGRATION = "integration";
const SAVES = "refs/mailchute";

/** An id as a part of a ref. git refuses some endings that an id may have; no id has a `=`. */
function refPart(id: string): string {
  return /(?:\.lock|\.)$/.test(id) || id.toLowerCase() === INTEGRATION ? `${id}=` : id;
}

/** The branch of a task, without `refs/heads/`. */
export function branchOf(id: string): string {
  return `mailchute/${refPart(id)}`;
}

/** The prefix of all refs of a task except its branch. */
export function refsOf(id: string): string {
  return `${SAVES}/${refPart(id)}/`;
}

/** The commit at which the task's branch began. */
export function baseRefOf(id: string): string {
  return `${refsOf(id)}base`;
}

/** The task of a base ref; undefined for another ref. */
export function idOfBase(name: string): string | undefined {
  return /^refs\/mailchute\/([^/]+)\/base$/.exec(name)?.[1]?.replace(/=$/, "");
}

/** The ref of a text that says what a run changed in the settings of the repository. */
export function changedRefOf(id: string): string {
  return `${refsOf(id)}settings-changed`;
}

/** The last commit of the task's branch, which was deleted because its work was elsewhere. Saves made before that commit are past. */
export function endedRefOf(id: string): string {
  return `${refsOf(id)}ended`;
}

/** Where the list of the commits of a task's worktree is kept, in case a run removes the worktree. */
export function headLogOf(commonDir: string, id: string): string {
  return join(commonDir, "mailchute-heads", refPart(id));
}

/** The ref of a save. @param repeat from 1; a task that is submitted again counts its runs from 1 again */
export function saveRefOf(id: string, attempt: number, repeat: number): string {
  return `${refsOf(id)}${attempt}${repeat === 1 ? "" : `.${repeat}`}`;
}

export interface Save {
  ref: string;
  commit: string;
  id: string;
  /** "2", or "2.3" for the third save of run 2. */
  number: string;
}

/** Undefined when the ref is no save. */
export function readSave({ name, commit }: { name: string; commit: string }): Save | undefined {
  const [, part = "", number = ""] = /^refs\/mailchute\/([^/]+)\/(\d+(?:\.\d+)?)$/.exec(name) ?? [];
  if (part === "") return undefined;
  return { ref: name, commit, id: part.replace(/=$/, ""), number };
}

/** Sorts saves by the time when they were made: "2" < "2.3" < "10". */
export function compareSaves(a: Save, b: Save): number {
  const [runA = 0, repeatA = 1] = a.number.split(".").map(Number);
  const [runB = 0, repeatB = 1] = b.number.split(".").map(Number);
  return runA - runB || repeatA - repeatB;
}

export function worktreesDir(
  stateDir: string,
  { worktrees_dir: dir }: Pick<Settings, "worktrees_dir">,
): string {
  return resolve(stateDir, dir);
}

export function worktreePath(dir: string, id: string): string {
  return join(dir, id);
}

/** The folder of worktrees that are being removed. */
export function trashDir(dir: string): string {
  return join(dir, ".removed");
}

/** The folder of what `setup` has made for several worktrees. */
export function cacheDir(dir: string): string {
  return join(dir, ".cache");
}

/** A small file for each repository. It says where to look for saves. */
export function repositoryNote(dir: string, commonDir: string): string {
  const hash = createHash("sha256").update(commonDir).digest("hex").slice(0, 16);
  return join(dir, ".repositories", hash);
}
