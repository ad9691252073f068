/**
 * Makes a git directory of ours in front of that of a repository: links to its objects, its refs and its worktrees, but other settings and
 * no hooks. Named as the common directory (`GIT_COMMON_DIR`), it decides what git obeys.
 */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { tryReadText } from "../host/regular-file.ts";
import { replaceText } from "../host/replace-document.ts";

/** All that worktrees share, except settings, hooks and `info/attributes`. */
const LINKED = [
  "HEAD",
  "objects",
  "refs",
  "packed-refs",
  "reftable",
  "shallow",
  "logs",
  "worktrees",
  "info/exclude",
];
/** git cannot make these behind a link. */
const FOLDERS = ["logs", "worktrees"];

/** @param text the settings. @throws system errors */
export function makeOwnCommonDir(
  own: string,
  commonDir: string,
  text: string,
  attributes = "",
): void {
  makeDirs(join(own, "info"), 2);
  linkCommonDir(own, commonDir);
  const files: [string, string][] = [
    [join(own, "config"), text],
    [join(own, "info", "attributes"), attributes],
  ];
  for (const [path, wanted] of files) if (tryReadText(path) !== wanted) replaceText(path, wanted);
}

/** Makes links that are missing. @throws system errors */
export function linkCommonDir(own: string, commonDir: string): void {
  for (const name of FOLDERS) tryMakeDir(join(commonDir, name));
  for (const name of LINKED) {
    const [link, target] = [join(own, name), join(commonDir, name)];
    try {
      if (fs.readlinkSync(link) === target) continue;
      fs.rmSync(link, { force: true });
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
    }
    try {
      fs.symlinkSync(target, link);
    } catch (error) {
      // Another process has made it just now.
      if (systemCode(error) !== "EEXIST") throw error;
    }
  }
}

function tryMakeDir(path: string): void {
  try {
    makeDirs(path);
  } catch {
    // A repository that only can be read.
  }
}

/** The git directory that is behind one of ours. */
export function behind(own: string): string {
  try {
    return fs.readlinkSync(join(own, "HEAD")).replace(/\/HEAD$/, "");
  } catch {
    return own;
  }
}
