/**
 * Lets a program commit in its worktree without a way into the repository. The program sees, in the place of the repository's git directory,
 * one of its own, with copies of the refs, an own folder for new objects, and the repository's objects, settings and hooks to be read.
 * After it has ended, its new objects and its branch are taken over. mailchute's git never works in that directory, because the
 * program may have written anything there.
 */
import fs from "node:fs";
import { join } from "node:path";
import { ErrGit } from "../core/errors.ts";
import { judgeOwner, ownerSequence } from "../host/identity.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { tryReadText, writeRegularText } from "../host/regular-file.ts";
import { atCommonDir, commitOf, type Repository } from "./repository.ts";
import { askGit, gitText } from "./run-git.ts";
import type { Worktree } from "./worktree.ts";

/** In the git directory of the worktree, so that it goes with the worktree. */
const NAME = "mailchute-private";
/** Names the process that has it open, beside it. */
const USER = "mailchute-private-user";
/** Where the program sees the objects of the repository, in its own git directory. */
const LENT_OBJECTS = "lent-objects";
/** Seen as they are, if they are there. */
const SEEN = ["config", "config.worktree", "hooks", "info", "modules", "lfs", "shallow"];
const OBJECT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const REF_BYTES_MAX = 4096;
/** Stashes that are taken over at most. */
const STASHES_MAX = 100;

/** A file or folder, and where the program sees it. */
interface Seen {
  from: string;
  to: string;
  isReadOnly?: boolean;
}

/** The git directory of programs in this worktree, one after the other. */
export function privateGit(
  repository: Repository,
  worktree: Worktree,
): { enter(): Promise<Seen[]>; leave(): Promise<void> } {
  const user = join(worktree.gitDir, USER);
  const own = ownerSequence()();
  return {
    async enter() {
      await takeAll(repository, worktree);
      writeRegularText(user, own);
      return makeOwn(repository, worktree);
    },
    async leave() {
      const now = tryReadText(user);
      // A worker that has lost its lease must not take it from the one that works there now.
      if (now !== undefined && now !== own && judgeOwner(now) === "alive") return;
      fs.rmSync(user, { force: true });
      await takeAll(repository, worktree);
    },
  };
}

/** Takes over what the program of a killed worker has left. Does nothing while a process has it open. @throws like `leave` */
export async function takePrivateGit(repository: Repository, worktree: Worktree): Promise<void> {
  if (!fs.existsSync(join(worktree.gitDir, NAME))) return;
  const user = tryReadText(join(worktree.gitDir, USER));
  if (user !== undefined && judgeOwner(user) === "alive") return;
  await takeAll(repository, worktree);
}

/** What an earlier program has left must have been taken over. @returns what the program is to see */
function makeOwn(repository: Repository, { gitDir }: Worktree): Seen[] {
  const { commonDir } = repository;
  const reads = { isReadOnly: true };
  if (isInTables(commonDir)) {
    // Its refs cannot be copied file by file. The program can look, and mailchute commits its work.
    return [{ from: gitDir, to: gitDir }, ...guards(gitDir)];
  }
  const own = join(gitDir, NAME);
  fs.rmSync(own, { recursive: true, force: true });
  for (const dir of ["objects/info", "objects/pack", "refs", "worktrees", LENT_OBJECTS])
    makeDirs(join(own, dir), 3);
  const lent = join(commonDir, LENT_OBJECTS);
  writeRegularText(join(own, "objects", "info", "alternates"), `${lent}\n`);
  // A ref may move from its file into the packed file: so the files are copied first.
  copySmallFiles(join(commonDir, "refs"), join(own, "refs"));
  for (const name of ["packed-refs", "HEAD", "logs/refs/stash"]) {
    const text = tryReadText(join(commonDir, name));
    if (text === undefined) continue;
    if (name.includes("/")) makeDirs(join(own, "logs", "refs"), 2);
    writeRegularText(join(own, name), text);
  }
  const there = SEEN.filter((name) => fs.existsSync(join(commonDir, name)));
  return [
    { from: own, to: commonDir },
    { from: join(commonDir, "objects"), to: lent, ...reads },
    ...there.map((name) => ({
      from: join(commonDir, name),
      to: join(commonDir, name),
      ...reads,
    })),
    { from: gitDir, to: gitDir },
    ...guards(gitDir),
  ];
}

/** Copies the files of a folder and of the folders in it. What is no file, and what goes before it is read, is left out. */
function copySmallFiles(from: string, to: string): void {
  makeDirs(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [path, copy] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copySmallFiles(path, copy);
    const text = entry.isFile() ? tryReadText(path) : undefined;
    if (text !== undefined) writeRegularText(copy, text);
  }
}

/** Files that lead git elsewhere. */
function guards(gitDir: string): Seen[] {
  return ["commondir", "gitdir"].map((name) => {
    const path = join(gitDir, name);
    return { from: path, to: path, isReadOnly: true };
  });
}

function isInTables(commonDir: string): boolean {
  return fs.existsSync(join(commonDir, "reftable"));
}

/**
 * Takes over all objects, the branch and the stashes. A killed call is made up for by the next one.
 * @throws ErrGit, system errors: then the directory stays
 */
async function takeAll(repository: Repository, worktree: Worktree): Promise<void> {
  const own = join(worktree.gitDir, NAME);
  if (!fs.existsSync(own)) return;
  await takeObjects(repository, own);
  await takeBranch(repository, worktree, own);
  await takeStashes(repository, own);
  fs.rmSync(own, { recursive: true, force: true });
}

/** git computes the name of each object anew, so the program cannot leave a wrong object under the name of another one. */
async function takeObjects(repository: Repository, own: string): Promise<void> {
  const { commonDir } = repository;
  const objects = join(own, "objects");
  if (fs.lstatSync(objects, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  // The program may have named other folders here.
  fs.rmSync(join(objects, "info"), { recursive: true, force: true });
  const names = [...looseObjects(objects), ...(await packedObjects(repository, objects))];
  if (names.length === 0) return;
  const call = atCommonDir(repository);
  const packs = join(commonDir, "objects", "pack");
  // git removes what is left of such a name.
  const temporary = join(packs, `tmp_mailchute-${process.pid}`);
  const lends = { ...call, env: { ...call.env, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects } };
  const input = `${names.join("\n")}\n`;
  const hash = await gitText({ ...lends, input }, "pack-objects", "--quiet", temporary);
  const kept = join(packs, `pack-${hash}`);
  if (!fs.existsSync(`${kept}.idx`)) {
    fs.renameSync(`${temporary}-${hash}.pack`, `${kept}.pack`);
    await askGit(call, "index-pack", `${kept}.pack`);
  }
  for (const end of ["pack", "idx", "rev"])
    fs.rmSync(`${temporary}-${hash}.${end}`, { force: true });
}

function looseObjects(objects: string): string[] {
  const folders = fs.readdirSync(objects).filter((name) => /^[0-9a-f]{2}$/.test(name));
  return folders.flatMap((folder) => {
    const path = join(objects, folder);
    if (!fs.lstatSync(path).isDirectory()) return [];
    const files = fs.readdirSync(path, { withFileTypes: true }).filter((one) => one.isFile());
    return files.map(({ name }) => folder + name).filter((name) => OBJECT.test(name));
  });
}

/** The objects of packs that git itself has made there, as when it fetches. */
async function packedObjects(repository: Repository, objects: string): Promise<string[]> {
  const dir = join(objects, "pack");
  if (fs.lstatSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const names: string[] = [];
  for (const { name } of fs
    .readdirSync(dir, { withFileTypes: true })
    .filter((one) => one.isFile())) {
    if (!name.endsWith(".idx")) continue;
    const text = await gitText(atCommonDir(repository), "verify-pack", "-v", join(dir, name));
    names.push(...text.split("\n").map((line) => line.split(" ", 1)[0] ?? ""));
  }
  return names.filter((name) => OBJECT.test(name));
}

/** Moves the branch of the worktree. A head on another branch of the program is named by its commit, because that branch goes. */
async function takeBranch(repository: Repository, worktree: Worktree, own: string): Promise<void> {
  const { branch, gitDir } = worktree;
  const call = atCommonDir(repository);
  const name = `refs/heads/${branch}`;
  const now = await commitOf(call, name);
  const tip = refIn(own, name);
  if (tip !== undefined && tip !== now) {
    await requireWhole(repository, tip, now);
    await askGit(call, "update-ref", name, tip, now ?? "");
  }
  const head = join(gitDir, "HEAD");
  const [, other] = /^ref: (refs\/\S+)\s*$/.exec(tryReadText(head) ?? "") ?? [];
  if (other === undefined || other === name) return;
  const commit = refIn(own, other);
  if (commit === undefined || commit === (await commitOf(call, other))) return;
  await requireWhole(repository, commit, now);
  writeRegularText(head, `${commit}\n`);
}

/** @throws ErrGit when the repository lacks anything of the commit */
async function requireWhole(
  repository: Repository,
  tip: string,
  from: string | undefined,
): Promise<void> {
  const call = atCommonDir(repository);
  if ((await commitOf(call, tip)) === undefined)
    throw new ErrGit(`the commit ${tip} of the run is missing`, { path: repository.commonDir });
  const asked = ["rev-list", "--objects", "--quiet", tip];
  await askGit(call, ...asked, ...(from === undefined ? [] : [`^${from}`]));
}

/** The value of a ref in the program's own git directory. git does not read it: see above. */
function refIn(own: string, name: string): string | undefined {
  const path = join(own, name);
  const loose = tryReadText(path)?.slice(0, REF_BYTES_MAX).trim();
  if (loose !== undefined && OBJECT.test(loose)) return loose;
  const packed = tryReadText(join(own, "packed-refs")) ?? "";
  const line = packed.split("\n").find((one) => one.endsWith(` ${name}`));
  const value = line?.slice(0, line.indexOf(" "));
  return value !== undefined && OBJECT.test(value) ? value : undefined;
}

/** Stashes are shared by all worktrees of a repository. Those that the program has made are added to them. */
async function takeStashes(repository: Repository, own: string): Promise<void> {
  const linesOf = (dir: string): string[] =>
    (tryReadText(join(dir, "logs", "refs", "stash")) ?? "").split("\n").slice(-STASHES_MAX);
  const known = new Set(linesOf(repository.commonDir).map((line) => line.split(" ")[1]));
  for (const line of linesOf(own)) {
    const commit = line.split(" ")[1] ?? "";
    if (!OBJECT.test(commit) || known.has(commit)) continue;
    const call = atCommonDir(repository);
    if ((await commitOf(call, commit)) === undefined) continue;
    const message = line.slice(line.indexOf("\t") + 1).slice(0, 200);
    await askGit(call, "stash", "store", "--message", message, commit);
  }
}
