/** Finds the worktrees of a state tree, and the repositories that it has made them in. Only reads. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import { findCheckout } from "../../git/find-repository.ts";
import { listWorktrees, openRepository, type Repository } from "../../git/repository.ts";
import { type Worktree, worktreeAt } from "../../git/worktree.ts";
import { listDir } from "../../host/list-dir.ts";
import { tryReadText } from "../../host/regular-file.ts";
import { branchOf, worktreesDir } from "./names.ts";

export interface FoundWorktree {
  id: string;
  repository: Repository;
  worktree: Worktree;
}

export interface AllWorktrees {
  /** The folder of all worktrees, without symbolic links; undefined when no worktree was made yet. */
  dir: string | undefined;
  repositories: Repository[];
  found: FoundWorktree[];
  /** What could not be read, a sentence for each. */
  problems: string[];
}

export async function findAll(
  stateDir: string,
  settings: Pick<Settings, "worktrees_dir">,
): Promise<AllWorktrees> {
  const wanted = worktreesDir(stateDir, settings);
  if (!fs.existsSync(wanted)) return { dir: undefined, repositories: [], found: [], problems: [] };
  const dir = fs.realpathSync(wanted);
  const repositories: Repository[] = [];
  const problems: string[] = [];
  const names = fs.readdirSync(dir).filter((name) => !name.startsWith("."));
  // A worktree knows its repository in its new place once git has repaired it.
  const places = names.map((name) => join(dir, name)).filter((path) => isThere(join(path, ".git")));
  const linked = places.flatMap((path) => findCheckout(path)?.commonDir ?? []).filter(isThere);
  for (const commonDir of new Set([...notedRepositories(dir), ...linked])) {
    try {
      if (!isThere(commonDir) && linked.length > 0) continue;
      if (!isThere(commonDir)) throw new Error(explainMoved(commonDir, places));
      repositories.push(await openRepository(commonDir));
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  const found = repositories.flatMap((repository) =>
    listWorktrees(repository.commonDir).flatMap(({ path, gitDir }) => {
      if (dirname(path) !== dir) return [];
      const id = basename(path);
      return [{ id, repository, worktree: worktreeAt(path, gitDir, branchOf(id)) }];
    }),
  );
  const known = new Set(found.map(({ id }) => id));
  for (const name of names)
    if (!known.has(name))
      problems.push(`${join(dir, name)} is no worktree of a repository that mailchute knows`);
  found.sort((a, b) => (a.id < b.id ? -1 : 1));
  return { dir, repositories, found, problems };
}

function isThere(path: string): boolean {
  return fs.existsSync(path);
}

function explainMoved(commonDir: string, worktrees: readonly string[]): string {
  const words =
    worktrees.length === 0 ? "" : ` ${worktrees.map((path) => JSON.stringify(path)).join(" ")}`;
  return `there is no repository ${commonDir}: if it was moved, run in its new place: git worktree repair${words}`;
}

function notedRepositories(dir: string): string[] {
  const notes = join(dir, ".repositories");
  const texts = listDir(notes).map((name) => tryReadText(join(notes, name)) ?? "");
  return [...new Set(texts)].filter((text) => text !== "").sort();
}
