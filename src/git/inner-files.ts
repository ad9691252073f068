/**
 * Finds the repositories inside a worktree that hold something which is not elsewhere. One that has not changed since `setup` holds
 * nothing. A run may have written their settings, so they are seen as files, and no git works in them.
 */
import fs from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { NAMED, readRegularText } from "../host/regular-file.ts";
import type { FilesIndex } from "./files-index.ts";
import { gitlinksIn, innerWork } from "./inner-repository.ts";
import type { TreeEntry } from "./own-index.ts";
import type { GitCall } from "./run-git.ts";
import { type FoundFiles, isGitName, onDisk, shown, walkFiles } from "./walk-files.ts";

type Stamps = Map<string, string>;

export interface Inner {
  /** Their directories, with the reason why they must stay. */
  kept: Map<string, string>;
  /** Submodules that changed, and whose remote has everything that they hold. Their commit belongs into the tree. */
  links: string[];
}

const OWN = "is a repository of its own";

/** What they hold now, for a later `explainInner`. Also has the git directories of submodules, which go with the worktree. */
export async function stampsOfInner(
  gitDir: string,
  found: FoundFiles["inner"],
): Promise<FilesIndex["inner"]> {
  const inner = new Map([...found].map(([dir, files]) => [dir, stampsOf(files)]));
  for (const module of modulesIn(join(gitDir, "modules"))) {
    const files = (await walkFiles(module, new Set([""]))).inner.get("");
    inner.set(keyOf(gitDir, module), stampsOf(files ?? new Map()));
  }
  return inner;
}

/** @param before what `stampsOfInner` said after `setup`. @param entries those of the tree. @throws ErrGit */
export async function explainInner(
  call: GitCall,
  gitDir: string,
  found: FoundFiles["inner"],
  before: FilesIndex["inner"],
  entries: ReadonlyMap<string, TreeEntry>,
): Promise<Inner> {
  const now = await stampsOfInner(gitDir, found);
  const changed = new Set(
    [...now].flatMap(([dir, all]) => (isSame(all, before.get(dir)) ? [] : [dir])),
  );
  const result: Inner = { kept: new Map(), links: [] };
  if (changed.size === 0) return result;
  const staged = new Set(await gitlinksIn(call).catch(() => []));
  const claimed = new Set<string>();
  for (const dir of found.keys()) {
    const module = moduleOf(call.cwd, dir);
    const key = module === undefined ? "" : keyOf(gitDir, module);
    claimed.add(key);
    if (!changed.has(dir) && !changed.has(key)) continue;
    const isLink = entries.get(dir)?.mode === "160000" || staged.has(shown(dir));
    const isOdd = isGitName(basename(dir)) && dir !== ".git";
    const why = isOdd ? "has a name that git takes into no tree" : OWN;
    if (!isLink || !(await isElsewhere(call, gitDir, dir))) result.kept.set(dir, why);
    else result.links.push(dir);
  }
  for (const dir of changed)
    if (dir.startsWith("\0") && !claimed.has(dir))
      result.kept.set(dir.slice(1), `${OWN}, and its files are gone`);
  return result;
}

async function isElsewhere(call: GitCall, gitDir: string, dir: string): Promise<boolean> {
  if (!fs.existsSync(join(call.cwd, shown(dir), ".git"))) return false;
  return (await innerWork({ ...call, gitDir }, [shown(dir)])).length === 0;
}

/** git writes an index anew when a program only looks, so it says nothing. What it alone has is an object, too. */
function stampsOf(files: ReadonlyMap<string, { stamp: string }>): Stamps {
  const kept = [...files].filter(([path]) => !/(?:^|\/\.git\/)index$/.test(path));
  return new Map(kept.map(([path, { stamp }]) => [path, stamp]));
}

function isSame(now: Stamps, before: Stamps | undefined): boolean {
  if (before?.size !== now.size) return false;
  return [...now].every(([path, stamp]) => before.get(path) === stamp);
}

function keyOf(gitDir: string, module: string): string {
  return `\0${relative(gitDir, module)}`;
}

/** The git directory of a submodule, if it is not inside of the directory. */
function moduleOf(root: string, dir: string): string | undefined {
  try {
    const text = readRegularText(onDisk(root, `${dir}/.git`), NAMED);
    const [, named] = /^gitdir: (.+?)\n*$/.exec(text) ?? [];
    return named === undefined ? undefined : resolve(root, shown(dir), named);
  } catch {
    return undefined;
  }
}

/** The git directories of submodules, at any depth. */
export function modulesIn(dir: string): string[] {
  let entries: fs.Dirent[] = [];
  try {
    entries = fs.readdirSync(dir, { withFileTypes: true });
  } catch {
    return [];
  }
  if (entries.some(({ name }) => name === "HEAD")) return [dir];
  return entries.flatMap((entry) => (entry.isDirectory() ? modulesIn(join(dir, entry.name)) : []));
}
