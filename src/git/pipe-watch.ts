/**
 * Finds what would keep a git waiting for ever: a pipe in the place of a file that git reads, or a device without an end. A run may have
 * made it. It looks only while a git runs for long, because the look costs more than most calls of git.
 */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { statOf, tryStatOf } from "../host/regular-file.ts";
import { repositoryOf } from "./find-repository.ts";

/** When it looks, counted from the start of the call (ms): first only into the folders of settings. */
const LOOKS_MS = [300, 1000, 10_000, 60_000, 600_000] as const;
/** Folders of the git directory that may be large. */
const LARGE: ReadonlySet<string> = new Set(["objects", "modules", "lfs"]);

export interface Places {
  /** Git directories. */
  gitDirs: readonly string[];
  /** The top of the worktree, in which git reads `.gitignore` and the like. */
  top: string;
}

/** @param onFound called once with the path @returns a function that ends the watch */
export function watchForPipes(places: () => Places, onFound: (path: string) => void): () => void {
  let isOver = false;
  let timer: NodeJS.Timeout;
  const lookLater = (look: number): void => {
    const afterMs = (LOOKS_MS[look] ?? Number.NaN) - (LOOKS_MS[look - 1] ?? 0);
    if (isOver || Number.isNaN(afterMs)) return;
    timer = setTimeout(() => {
      findPipe(places(), look > 0, () => isOver).then(
        (path) => {
          if (path === undefined) lookLater(look + 1);
          else if (!isOver) onFound(path);
        },
        () => lookLater(look + 1),
      );
    }, afterMs);
  };
  lookLater(0);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Where a git that is called in this directory reads. */
export function placesOf(cwd: string, gitDirs: readonly (string | undefined)[]): Places {
  const named = gitDirs.filter((dir) => dir !== undefined);
  let top = cwd;
  while (top !== dirname(top) && !fs.existsSync(join(top, ".git"))) top = dirname(top);
  const isIn = fs.existsSync(join(top, ".git"));
  return { gitDirs: [...named, repositoryOf(cwd)], top: isIn ? top : cwd };
}

async function findPipe(
  { gitDirs, top }: Places,
  isThorough: boolean,
  isOver: () => boolean,
): Promise<string | undefined> {
  const isSmall = (name: string): boolean => isThorough || !LARGE.has(name);
  for (const dir of gitDirs) {
    const found = await walk(dir, { enters: isSmall, counts: () => true }, isOver);
    if (found !== undefined) return found;
  }
  if (!isThorough) return undefined;
  const counts = (name: string): boolean => /^\.(?:git|mailmap)/.test(name);
  return walk(top, { enters: (name) => name !== ".git", counts }, isOver);
}

interface Wanted {
  enters: (name: string) => boolean;
  counts: (name: string) => boolean;
}

async function walk(
  dir: string,
  wanted: Wanted,
  isOver: () => boolean,
): Promise<string | undefined> {
  const folders = [dir];
  for (let at = folders.pop(); at !== undefined && !isOver(); at = folders.pop()) {
    // A folder that cannot be listed cannot be read by git either.
    const entries = await fs.promises.readdir(at, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory() && wanted.enters(entry.name)) folders.push(path);
      else if (wanted.counts(entry.name) && hasNoEnd(entry, path)) return path;
    }
  }
  return undefined;
}

function hasNoEnd(entry: fs.Dirent, path: string): boolean {
  if (entry.isFile() || entry.isDirectory() || entry.isSocket()) return false;
  const stats = entry.isSymbolicLink() ? tryStatOf(path) : statOf(path);
  if (stats?.isFIFO() === true) return true;
  // People switch off a hook with a link to /dev/null. That one has an end.
  return stats?.isCharacterDevice() === true && stats.rdev !== tryStatOf("/dev/null")?.rdev;
}
