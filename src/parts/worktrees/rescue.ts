/** Brings saved work back into new branches or a new directory. It changes no existing branch or file. */
import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ErrGit } from "../../core/errors.ts";
import { makeRef } from "../../git/refs.ts";
import { atCommonDir, commitOf, type Repository } from "../../git/repository.ts";
import { askGit, gitLines, gitText } from "../../git/run-git.ts";
import { type Held, readHeld, writeFilesOf } from "../../git/snapshot.ts";
import { makeDirs } from "../../host/make-dirs.ts";
import type { Save } from "./names.ts";

export interface SaveDetails {
  id: string;
  ref: string;
  number: string;
  commit: string;
  /** Unix seconds. */
  saved_at: number;
  /** What the save holds beside the files: `index`, `stash`, `earlier` commits. */
  held: Held;
  /** How many files differ from the head at the time of the save. */
  files: number;
  repository: string;
}

export async function describeSave(repository: Repository, save: Save): Promise<SaveDetails> {
  const call = atCommonDir(repository);
  const text = await gitText(call, "show", "-s", "--format=%ct%n%B", save.commit);
  const held = readHeld(text);
  const head = held.find(([what]) => what === "head")?.[1];
  const from = head ?? (await gitText({ ...call, input: "" }, "mktree"));
  const differing = ["diff-tree", "-r", "--name-only", from, save.commit];
  return {
    ...save,
    saved_at: Number(text.split("\n")[0]),
    held,
    files: (await gitLines(call, ...differing)).length,
    repository: repository.commonDir,
  };
}

/**
 * @param name the branch for the files; other parts of the save get `<name>.index`, `<name>.stash-1`, …
 * @returns the branches that it made
 * @throws ErrGit when one of them exists
 */
export async function rescueToBranch(
  repository: Repository,
  save: SaveDetails,
  name: string,
): Promise<string[]> {
  const call = atCommonDir(repository);
  await askGit(call, "check-ref-format", "--branch", name);
  const parts = await partsOf(repository, save);
  const wanted = parts.map(({ what, commit }) => ({
    branch: what === "" ? name : `${name}.${what}`,
    commit,
  }));
  for (const { branch } of wanted)
    if ((await commitOf(call, `refs/heads/${branch}`)) !== undefined)
      throw new ErrGit(`the branch ${branch} is there`, {
        path: repository.commonDir,
        hint: "choose another name: a rescue changes no branch",
      });
  for (const { branch, commit } of wanted)
    await makeRef(repository, { name: `refs/heads/${branch}`, commit });
  return wanted.map(({ branch }) => branch);
}

/**
 * @param dir a new directory for the files; other parts of the save get `<dir>.index`, `<dir>.stash-1`, …
 * @returns the directories that it made
 * @throws ErrGit when one of them exists, or is inside a person's worktree
 */
export async function rescueToDirectory(
  repository: Repository,
  save: SaveDetails,
  dir: string,
): Promise<string[]> {
  const path = resolve(dir);
  await refuseTree(path);
  const parts = await partsOf(repository, save);
  const wanted = parts.map(({ what, commit }) => ({
    dir: what === "" ? path : `${path}.${what}`,
    commit,
  }));
  for (const one of wanted)
    if (fs.existsSync(one.dir))
      throw new ErrGit(`${one.dir} is there`, {
        path: one.dir,
        hint: "choose a directory that is not there: a rescue changes no file",
      });
  for (const one of wanted) await writeFiles(repository, one.commit, one.dir);
  return wanted.map((one) => one.dir);
}

/** The commits of a save, each with a name; "" is the name of the commit with the files. */
async function partsOf(
  repository: Repository,
  { commit, held, id, number }: SaveDetails,
): Promise<{ what: string; commit: string }[]> {
  const call = atCommonDir(repository);
  const head = held.find(([what]) => what === "head")?.[1];
  const input = `Work of ${id}, run ${number}, as mailchute saved it\n`;
  const parents = head === undefined ? [] : ["-p", head];
  const files = await gitText({ ...call, input }, "commit-tree", `${commit}^{tree}`, ...parents);
  const counts = new Map<string, number>();
  const others = held.flatMap(([what, one]) => {
    if (what === "head") return [];
    const count = (counts.get(what) ?? 0) + 1;
    counts.set(what, count);
    return [{ what: what === "index" ? what : `${what}-${count}`, commit: one }];
  });
  return [{ what: "", commit: files }, ...others];
}

async function refuseTree(path: string): Promise<void> {
  let above = dirname(path);
  while (!fs.existsSync(above)) above = dirname(above);
  const answers = [128];
  const asked = await askGit(
    { cwd: above, answers, isPlain: true },
    "rev-parse",
    "--is-inside-work-tree",
  );
  if (asked.code === 0 && asked.out.toString().trim() === "true")
    throw new ErrGit(`${path} lies in the tree of a repository`, {
      path,
      hint: "choose a directory elsewhere, or use --branch",
    });
}

/** Writes the files of a commit into a folder, and the untracked files of a stash entry, too. */
async function writeFiles(repository: Repository, commit: string, dir: string): Promise<void> {
  makeDirs(dir, Number.POSITIVE_INFINITY);
  const call = atCommonDir(repository);
  const index = join(dir, ".mailchute-index");
  const env = { ...repository.env, GIT_INDEX_FILE: index };
  const at = { cwd: dir, gitDir: repository.commonDir, env };
  const untracked = await commitOf(call, `${commit}^3`);
  const isStash =
    untracked !== undefined &&
    (await gitLines(call, "rev-list", "--parents", "--max-count=1", untracked)).every(
      (line) => !line.includes(" "),
    );
  for (const one of isStash ? [commit, untracked] : [commit]) await writeFilesOf(at, one);
  fs.rmSync(index, { force: true });
}
