/**
 * Finds links to commits of other repositories (submodules) that would lead nowhere: only the worktree of their run had the commit, or
 * nothing here has it. Only reads, apart from a folder of its own in the git directory.
 */
import { dirname, join } from "node:path";
import { findCheckout } from "./find-repository.ts";
import { modulesIn } from "./inner-files.ts";
import { gitDirOf, hasCommit } from "./inner-repository.ts";
import { atCommonDir, findGitDir, type Repository } from "./repository.ts";
import { askGit } from "./run-git.ts";
import { inTurn } from "./turn.ts";
import { shown } from "./walk-files.ts";

interface Link {
  path: string;
  commit: string;
}

/**
 * Links of the tip that are new, and whose commit is neither in a repository of the person nor on a remote of one in the worktree.
 * @param known commits with links that are not new. @param worktree its directory, which may be gone. @throws ErrGit
 */
export async function lostLinks(
  repository: Repository,
  { tip, known, worktree }: { tip: string; known: readonly string[]; worktree: string },
): Promise<Link[]> {
  let links: Link[] | undefined;
  for (const from of known) {
    const changed = await changedLinks(repository, from, tip);
    const isNew = ({ path }: Link): boolean => changed.some((one) => one.path === path);
    links = links === undefined ? changed : links.filter(isNew);
  }
  if (links === undefined || links.length === 0) return [];
  return inTurn(repository, async () => {
    const lost: Link[] = [];
    for (const link of links) if (!(await isThere(repository, link, worktree))) lost.push(link);
    return lost.map(({ path, commit }) => ({ path: shown(path), commit }));
  });
}

async function changedLinks(repository: Repository, from: string, to: string): Promise<Link[]> {
  const asked = ["diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none"];
  const { out } = await askGit(atCommonDir(repository), ...asked, from, to);
  const parts = out.toString("latin1").split("\0");
  const links: Link[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, mode, , commit = ""] = (parts[at] ?? "").split(" ");
    if (mode === "160000") links.push({ path: parts[at + 1] ?? "", commit });
  }
  return links;
}

async function isThere(
  repository: Repository,
  { path, commit }: Link,
  worktree: string,
): Promise<boolean> {
  const { commonDir } = repository;
  const { top } = findCheckout(dirname(commonDir)) ?? {};
  const gitDir = findGitDir(repository, worktree);
  const inside = (root: string): string[] => [gitDirOf(join(root, shown(path))) ?? []].flat();
  // What a run has made or fetched in its worktree goes with it, unless a remote has it, too.
  const places = {
    "--all": [commonDir, ...modulesIn(join(commonDir, "modules")), ...inside(top ?? commonDir)],
    "--remotes": [
      ...(gitDir === undefined ? [] : modulesIn(join(gitDir, "modules"))),
      ...inside(worktree),
    ],
  };
  for (const [kept, dirs] of Object.entries(places))
    for (const dir of dirs) if (await hasCommit(repository, dir, commit, kept)) return true;
  return false;
}
