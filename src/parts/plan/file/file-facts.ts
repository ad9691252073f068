/** Functions that compare and replace saved files. They know nothing of plans. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../../../core/errors.ts";
import { exactStatOf, NAMED, readRegular, statOf } from "../../../host/regular-file.ts";

/** Error codes of file systems that cannot make a hard link. */
const NO_LINKS: ReadonlySet<string> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);

/** The state of a file when its text was read or written. */
export interface FileStamp {
  /** Device, inode, size and mtime. Changes with each save. */
  key: string;
  hash: string;
}

/** Links a file to a free name; renames it on file systems without hard links. @returns false if the name is taken */
export function linkWhereNothingIs(from: string, to: string): boolean {
  try {
    fs.linkSync(from, to);
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST") return false;
    if (!NO_LINKS.has(code)) throw error;
    // Without hard links the check and the rename are two steps.
    if (fs.existsSync(to)) return false;
    fs.renameSync(from, to);
    return true;
  }
}

export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statOf(path));
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

export function keyOf(stats: fs.BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`;
}

export function keyAt(path: string): string | undefined {
  const stats = exactStatOf(path);
  return stats === undefined ? undefined : keyOf(stats);
}

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha1").update(bytes).digest("hex").slice(0, 16);
}

export function hashOfFile(path: string): string | undefined {
  try {
    return hashOf(readRegular(path, NAMED));
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Gives a new file the owner of another file, if this process may do so. */
export function keepOwner(fd: number, like: fs.BigIntStats): void {
  const own = fs.fstatSync(fd, { bigint: true });
  if (own.uid === like.uid && own.gid === like.gid) return;
  try {
    fs.fchownSync(fd, Number(like.uid), Number(like.gid));
  } catch (error) {
    if (systemCode(error) !== "EPERM") throw error;
  }
}

/** The file that the path leads to; the path itself if nothing is there; undefined for a broken symbolic link. */
export function targetOf(path: string): string | undefined {
  try {
    return fs.realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    const isLink = fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? undefined : join(fs.realpathSync(dirname(path)), basename(path));
  }
}
