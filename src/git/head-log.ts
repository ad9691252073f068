/**
 * Keeps the list of all commits at which a worktree has stood, even if a run removes the worktree with its branch. git appends to the file
 * of that list, so a second name for the file, beside the worktree, has each line until git writes the file anew.
 */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { openRegular, readEnd, statOf } from "../host/regular-file.ts";
import { atCommonDir, type Repository } from "./repository.ts";
import { gitLines } from "./run-git.ts";

/** A snapshot names at most this many of them. */
const COMMITS_MAX = 1000;
/** They stand at the end of the list. */
const END_BYTES_MAX = 4 * 1024 * 1024;
/** The file may have its second name already. */
const TO_APPEND = fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT;

/** @param kept the second name, in the same file system. A file system without links goes without it */
export function linkHeadLog(gitDir: string, kept: string): void {
  const log = join(gitDir, "logs", "HEAD");
  try {
    for (const dir of [dirname(log), dirname(kept)]) if (!fs.existsSync(dir)) fs.mkdirSync(dir);
    // If it is there, git appends to it even if its settings want no such list.
    fs.closeSync(openRegular(log, TO_APPEND));
    if (statOf(kept)?.ino === statOf(log)?.ino) return;
    fs.rmSync(kept, { force: true });
    fs.linkSync(log, kept);
  } catch {
    // The worktree itself still has it.
  }
}

/**
 * Commits of the list that no branch, tag or remote has, without those that another one of them contains; the newest first.
 * @param base where the work began. It and what is before it are no work
 */
export async function lostCommits(
  repository: Repository,
  kept: string,
  base: string,
): Promise<string[]> {
  const named = readEnd(kept, END_BYTES_MAX)
    .split("\n")
    .flatMap((line) => line.split(" ", 2));
  const commits = named.filter((one) => /^(?!0+$)[0-9a-f]{40,64}$/.test(one)).reverse();
  const latest = [...new Set(commits)].slice(0, COMMITS_MAX);
  if (latest.length === 0) return [];
  const lostIn = (from: readonly string[]): Promise<string[]> => {
    const call = { ...atCommonDir(repository), input: `${from.join("\n")}\n` };
    const elsewhere = ["--not", "--branches", "--tags", "--remotes", base];
    return gitLines(call, "rev-list", "--stdin", "--ignore-missing", ...elsewhere);
  };
  const lost = new Set(await lostIn(latest));
  const tips: string[] = [];
  for (const tip of latest) {
    if (!lost.has(tip)) continue;
    tips.push(tip);
    for (const one of await lostIn([tip])) lost.delete(one);
  }
  return tips;
}
