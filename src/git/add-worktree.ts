/** Makes worktrees. git writes our common directory into them, and they are to work for people and agents without it. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { ErrGit } from "../core/errors.ts";
import { tryReadText, tryStatOf, writeNew } from "../host/regular-file.ts";
import { replaceText } from "../host/replace-document.ts";
import { parseSettings, settingsText } from "./obeyed-settings.ts";
import { atCommonDir, findGitDir, type Repository } from "./repository.ts";
import { askGit, gitList } from "./run-git.ts";

/** Call it in turn. @param args what `git worktree add` gets besides the path. @returns its git directory. @throws ErrGit */
export async function addWorktree(
  repository: Repository,
  path: string,
  args: { options: readonly string[]; start: string },
): Promise<string> {
  const asked = ["worktree", "add", "--quiet", "--no-checkout", ...args.options, path, args.start];
  await askGit(atCommonDir(repository), ...asked);
  const gitDir = findGitDir(repository, path);
  if (gitDir === undefined)
    throw new ErrGit(`git does not know its new worktree ${path}`, { path });
  await copySettings(repository, gitDir);
  nameGitDir(path, gitDir);
  return gitDir;
}

/**
 * Has the worktree name its own git directory. After a kill before this it works, but names ours. A repository that a run has made in
 * its place holds work, and stays.
 */
export function nameGitDir(path: string, gitDir: string): void {
  const file = join(path, ".git");
  const text = `gitdir: ${gitDir}\n`;
  if (tryReadText(file) === text || tryStatOf(file)?.isDirectory() === true) return;
  // Beside the worktree: the git directory may be on another disk.
  replaceText(file, text, { stagingDir: join(dirname(path), ".tmp") });
}

/**
 * A worktree begins with the private settings of the first one, such as a sparse checkout. git copies them, but our settings say that
 * there are none.
 */
async function copySettings({ commonDir }: Repository, gitDir: string): Promise<void> {
  const [from, to] = [commonDir, gitDir].map((dir) => join(dir, "config.worktree"));
  if (!fs.existsSync(from ?? "") || to === undefined || fs.existsSync(to)) return;
  const call = { cwd: commonDir, env: { GIT_DIR: commonDir }, isPlain: true };
  const found = await gitList(call, "config", "--file", from ?? "", "--list", "-z");
  const kept = parseSettings(found).filter(([name]) => !/^core\.(?:bare|worktree)$/.test(name));
  writeNew(to, settingsText(kept));
}
