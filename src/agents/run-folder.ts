/** Counts, cuts and removes the files of a run's folder, in slices. A program may put any file there. */
import fs from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { CLAIM_NAME } from "../core/names.ts";
import { openToAppend } from "../host/regular-file.ts";

/** How many names one slice looks at. */
const SLICE = 1000;
/** Our own files in it, by name. */
const OWN_FILE = /^(?:task\.json|packet(?:\.\w+)?\.md)$/;

export interface Usage {
  bytes: number;
  /** Directories, too. */
  files: number;
}

interface Found {
  path: string;
  /** 0 for a directory. */
  size: number;
  isFile: boolean;
  isOwn: boolean;
}

/** Counts the files below a folder, and their bytes. Files may change while a long count goes on. */
export class FolderCount {
  readonly usage: Usage = { bytes: 0, files: 0 };
  private readonly names: Generator<Found>;

  constructor(dir: string) {
    this.names = namesIn(dir);
  }

  /** Counts one slice more. @returns whether that was the last one */
  goOn(): boolean {
    for (let n = 0; n < SLICE; n++) {
      const { done, value } = this.names.next();
      if (done === true) return true;
      this.usage.bytes += value.size;
      this.usage.files++;
    }
    return false;
  }

  close(): void {
    this.names.return(undefined);
  }
}

/**
 * Cuts files of the folder until they are within the limit.
 * @param bytesMax the limit for all files of the folder together
 * @param logs paths. It cuts these first, then the largest files, and files with a name of ours last
 * @param filesMax it looks at no more names than this
 */
export async function cutFolder(
  dir: string,
  bytesMax: number,
  logs: readonly string[],
  filesMax: number,
): Promise<void> {
  const files: Found[] = [];
  let excess = -bytesMax;
  let count = 0;
  for (const one of namesIn(dir)) {
    if (++count > filesMax) break;
    if (count % SLICE === 0) await turn();
    if (!one.isFile) continue;
    files.push(one);
    excess += one.size;
  }
  const rank = ({ path, size, isOwn }: Found): number =>
    logs.includes(path) ? Number.POSITIVE_INFINITY : isOwn ? -1 : size;
  for (const file of files.sort((a, b) => rank(b) - rank(a))) {
    if (excess <= 0) return;
    excess -= shorten(file.path, Math.max(0, file.size - excess));
  }
}

/** Removes everything that the system lets it remove. */
export async function emptyFolder(dir: string): Promise<void> {
  try {
    // A program may have replaced it by a link.
    if (!(await fs.promises.lstat(dir)).isDirectory()) return;
    for await (const { name } of await fs.promises.opendir(dir))
      await fs.promises.rm(join(dir, name), { recursive: true, force: true });
  } catch {
    // The folder is removed when its retention is over.
  }
}

/** Leaves a file with a second name alone, because another program may use it. @returns by how much the file is shorter now (bytes) */
export function shorten(path: string, toBytes: number): number {
  try {
    const fd = openToAppend(path);
    try {
      const { size } = fs.fstatSync(fd);
      if (size <= toBytes) return 0;
      fs.ftruncateSync(fd, toBytes);
      return size - toBytes;
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return 0;
  }
}

function* namesIn(dir: string): Generator<Found> {
  const folders = [dir];
  for (let place = folders.pop(); place !== undefined; place = folders.pop()) {
    let folder: fs.Dir;
    try {
      folder = fs.opendirSync(place);
    } catch {
      continue;
    }
    try {
      for (let one = folder.readSync(); one !== null; one = folder.readSync()) {
        const path = join(place, one.name);
        const isFile = one.isFile();
        if (one.isDirectory()) folders.push(path);
        const size = isFile ? (fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) : 0;
        yield { path, size, isFile, isOwn: place === dir && isOwn(one.name) };
      }
    } catch {
      // The folder changes while we read it.
    } finally {
      folder.closeSync();
    }
  }
}

const isOwn = (name: string): boolean => name === CLAIM_NAME || OWN_FILE.test(name);
