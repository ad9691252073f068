/**
 * Our own index of the files of a worktree, in its git directory: the stamp of each file, and which contents it had then. A file
 * with the same stamp need not be read again. git's own index cannot serve for this, because a run can tell git to look away.
 */
import fs from "node:fs";
import { join } from "node:path";
import { RECORD_BYTES_MAX } from "../core/limits.ts";
import { readRegularText, writeAnew } from "../host/regular-file.ts";
import type { FileMode } from "./walk-files.ts";

export interface KnownFile {
  stamp: string;
  /** How it stood on the disk. */
  mode: FileMode;
  /** Objects with these contents: the file as it is, or what git makes into this file when it checks it out. */
  blobs: readonly string[];
  /** True if `setup` made it, and git ignored it. Such a file may be lost as long as it does not change. */
  isSpare: boolean;
}

export interface FilesIndex {
  files: Map<string, KnownFile>;
  /** The stamps of all files of a repository inside, as `setup` left it, by its directory. */
  inner: Map<string, Map<string, string>>;
}

interface Stored {
  v: 1;
  files: [path: string, stamp: string, mode: FileMode, blobs: string, isSpare: 0 | 1][];
  inner: [directory: string, files: [path: string, stamp: string][]][];
}

const NAME = "mailchute-files";

/** Undefined when there is none, or a broken one. Then all files are read. */
export function readFilesIndex(gitDir: string): FilesIndex | undefined {
  try {
    const stored = JSON.parse(
      readRegularText(join(gitDir, NAME), { bytesMax: RECORD_BYTES_MAX }),
    ) as Stored;
    if (stored.v !== 1) return undefined;
    const files = new Map<string, KnownFile>();
    for (const [path, stamp, mode, blobs, isSpare] of stored.files)
      files.set(path, {
        stamp,
        mode,
        blobs: blobs === "" ? [] : blobs.split(" "),
        isSpare: isSpare === 1,
      });
    return { files, inner: new Map(stored.inner.map(([dir, all]) => [dir, new Map(all)])) };
  } catch {
    return undefined;
  }
}

/** A crash leaves the old index or the new one. So does a full disk: then the next look reads more files. */
export function writeFilesIndex(gitDir: string, { files, inner }: FilesIndex): void {
  const stored: Stored = {
    v: 1,
    files: [...files].map(([path, { stamp, mode, blobs, isSpare }]) => [
      path,
      stamp,
      mode,
      blobs.join(" "),
      isSpare ? 1 : 0,
    ]),
    inner: [...inner].map(([dir, all]) => [dir, [...all]]),
  };
  const staged = join(gitDir, `${NAME}.${process.pid}`);
  try {
    writeAnew(staged, JSON.stringify(stored));
    fs.renameSync(staged, join(gitDir, NAME));
  } catch {
    fs.rmSync(staged, { force: true });
  }
}
