/** Finds each git that may be at work in a repository. In doubt, a git counts as at work. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { ProcessLook } from "../host/processes/process-source.ts";
import { processes } from "../host/processes/processes.ts";
import { NAMED, readRegularText, statOf } from "../host/regular-file.ts";

/** Programs of git that run for days, and change no ref. For a script, the shell that reads it comes first. */
const DAEMON =
  /^(?:[^\0]*\0)?[^\0]*\bgit[-\0](?:daemon|fsmonitor--daemon|credential-cache--daemon)\0/;

/** @returns pid and start of each; undefined when no process can be seen */
export function runningGits(commonDir: string): string[] | undefined {
  const look = processes().look();
  if (look.rows.length === 0) return undefined;
  const gits = look.rows.filter(({ pid }) => isGit(look, pid) && mayBeIn(look, pid, commonDir));
  return gits.map(({ pid, startTicks }) => `${pid} ${startTicks}`);
}

/** A script named git counts as git, and so do the programs of git itself. */
function isGit(look: ProcessLook, pid: number): boolean {
  return look.nameOf(pid).startsWith("git") && !DAEMON.test(look.argsOf(pid) ?? "");
}

function mayBeIn(look: ProcessLook, pid: number, commonDir: string): boolean {
  const cwd = look.cwdOf(pid);
  if (cwd === undefined) return true;
  const words = [look.argsOf(pid), look.environ(pid)?.toString()];
  // An argument or a variable may tell it to work in another directory.
  if (words.some((text) => text === undefined || /git[-_](?:common[-_])?dir/i.test(text)))
    return true;
  try {
    return isIn(cwd, fs.realpathSync(commonDir));
  } catch {
    return true;
  }
}

function isIn(cwd: string, commonDir: string): boolean {
  return `${cwd}/`.startsWith(`${commonDir}/`) || commonDirOf(cwd) === commonDir;
}

/** The common git directory of the worktree that contains `dir`. */
function commonDirOf(dir: string): string | undefined {
  for (let at = dir; ; at = dirname(at)) {
    const found = join(at, ".git");
    const stats = statOf(found);
    if (stats?.isDirectory() === true) return fs.realpathSync(found);
    if (stats !== undefined) return followed(found);
    if (at === dirname(at)) return undefined;
  }
}

/** @param file the `.git` of a worktree or a submodule */
function followed(file: string): string {
  const gitDir = resolve(
    dirname(file),
    readRegularText(file, NAMED)
      .replace(/^gitdir:/, "")
      .trim(),
  );
  const common = join(gitDir, "commondir");
  if (!fs.existsSync(common)) return fs.realpathSync(gitDir);
  return fs.realpathSync(resolve(gitDir, readRegularText(common, NAMED).trim()));
}
