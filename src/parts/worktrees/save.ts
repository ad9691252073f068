/** Saves under a ref what only a worktree holds, so that it outlives the worktree. */
import fs from "node:fs";
import { lostCommits } from "../../git/head-log.ts";
import { takePrivateGit } from "../../git/private-git.ts";
import { listRefs, makeRef } from "../../git/refs.ts";
import { atCommonDir, type Repository } from "../../git/repository.ts";
import { gitText } from "../../git/run-git.ts";
import {
  commitSnapshot,
  isEmpty,
  type Snapshot,
  snapshotOfGone,
  takeSnapshot,
} from "../../git/snapshot.ts";
import type { Worktree } from "../../git/worktree.ts";
import {
  baseRefOf,
  compareSaves,
  headLogOf,
  readSave,
  refsOf,
  type Save,
  saveRefOf,
} from "./names.ts";

export interface SaveOrder {
  repository: Repository;
  worktree: Worktree;
  id: string;
  /** The run that did the work; 0 for work of a person, or of before the first run. */
  attempt: number;
  /** Ignored files that are saved, too. */
  more?: readonly string[];
}

export interface Saved {
  snapshot: Snapshot;
  /** The ref of the save; undefined when the branch of the task has all the work. */
  ref: string | undefined;
}

/** Most saves of one run number. It is far more than there are runs. */
const REPEATS_MAX = 10_000;

/** A kill at any step leaves objects that no ref names, or the whole save. @throws ErrGit, system errors */
export async function saveWork(order: SaveOrder): Promise<Saved> {
  const { repository, worktree, id, attempt } = order;
  await takePrivateGit(repository, worktree);
  const snapshot = isGone(worktree)
    ? await snapshotOfLost(order)
    : await takeSnapshot(repository, worktree, order);
  if (isEmpty(snapshot)) return { snapshot, ref: undefined };
  const before = await savesOf(repository, id);
  for (const save of before)
    if (await holds(repository, save, snapshot)) return { snapshot, ref: save.ref };
  const title = `Work of ${id}, run ${attempt}, on ${worktree.branch}`;
  const commit = await commitSnapshot(repository, snapshot, title);
  for (let repeat = 1; repeat <= REPEATS_MAX; repeat++) {
    const name = saveRefOf(id, attempt, repeat);
    if (before.some(({ ref }) => ref === name)) continue;
    if (await makeRef(repository, { name, commit })) return { snapshot, ref: name };
  }
  throw new Error(`${id} has more than ${REPEATS_MAX} saves of run ${attempt}`);
}

/** Whether git does not know the worktree any more, because a run has removed it. */
export function isGone({ gitDir }: Worktree): boolean {
  return !fs.existsSync(gitDir);
}

/** What a removed worktree had in commits that no ref has. */
async function snapshotOfLost({ repository, worktree, id }: SaveOrder): Promise<Snapshot> {
  const base = baseRefOf(id);
  const tips = await lostCommits(repository, headLogOf(repository.commonDir, id), base);
  const snapshot = await snapshotOfGone(repository, tips, base);
  const { path, instead } = worktree;
  if (path === undefined && instead === undefined) return snapshot;
  const left = [instead ?? `${path} is there, and git does not know it any more`];
  return { ...snapshot, uncommittable: left, missing: left };
}

/** All saves of a task, the oldest first; without an id, of all tasks. */
export async function savesOf(repository: Repository, id?: string): Promise<Save[]> {
  const prefix = id === undefined ? "refs/mailchute/" : refsOf(id);
  const saves = (await listRefs(repository, prefix)).flatMap((ref) => readSave(ref) ?? []);
  return saves.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : compareSaves(a, b)));
}

/** Whether an earlier save has the same files and all these commits. */
async function holds(
  repository: Repository,
  { commit }: Save,
  { tree, parents }: Snapshot,
): Promise<boolean> {
  const text = await gitText(atCommonDir(repository), "show", "-s", "--format=%T %P", commit);
  const [savedTree, ...saved] = text.split(" ");
  return tree === savedTree && parents.every((parent) => saved.includes(parent));
}
