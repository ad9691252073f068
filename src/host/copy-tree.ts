/**
 * Copies folders as cheaply as the file system allows: with reflinks, which share the bytes until one of both changes, else as bytes,
 * or as hard links for callers that ask for them. Follows no link. Others have their turn in between.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { setImmediate as othersTurn } from "node:timers/promises";
import { readRegular, writeNew } from "./regular-file.ts";

/** How long a walk keeps the thread (ms). */
const TURN_MS = 10;
/** A larger file is copied by another thread (bytes). */
const QUICK_BYTES_MAX = 1024 * 1024;
/** A larger file is not looked into for a path (bytes). */
const TEXT_BYTES_MAX = 4 * 1024 * 1024;
const { COPYFILE_EXCL, COPYFILE_FICLONE, COPYFILE_FICLONE_FORCE } = fs.constants;

interface TreeEntry {
  /** Relative to the top; "" for the top itself. */
  path: string;
  stats: fs.BigIntStats;
}

/** Everything in a folder: each folder before what is in it, the same order each time. @throws a system error */
async function* walkTree(root: string): AsyncGenerator<TreeEntry> {
  let endMs = performance.now() + TURN_MS;
  const left = [""];
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const stats = fs.lstatSync(join(root, path), { bigint: true });
    yield { path, stats };
    if (stats.isDirectory()) {
      const names = fs.readdirSync(join(root, path)).sort().reverse();
      left.push(...names.map((name) => (path === "" ? name : `${path}/${name}`)));
    }
    if (performance.now() < endMs) continue;
    await othersTurn();
    endMs = performance.now() + TURN_MS;
  }
}

export interface CopyWish {
  /** True: nothing in the copy may be written. False: its owner may write everything but hard links. */
  isReadOnly: boolean;
  /** True: hard links. A file that has another name already is copied even so. */
  isLinked: boolean;
  /** These files, and all links, have the first text replaced by the second one. */
  replaced?: { files: ReadonlySet<string>; from: string; to: string };
}

/** @param to must not exist. @throws a system error, also for what is no file, folder or link */
export async function copyTree(from: string, to: string, wish: CopyWish): Promise<void> {
  const { isReadOnly, replaced } = wish;
  const folders: [path: string, mode: number][] = [];
  for await (const { path, stats } of walkTree(from)) {
    const [source, target] = [join(from, path), join(to, path)];
    if (stats.isDirectory()) {
      fs.mkdirSync(target, { mode: 0o700 });
      folders.push([target, modeOf(stats, isReadOnly, 0o700)]);
    } else if (stats.isSymbolicLink())
      fs.symlinkSync(replace(fs.readlinkSync(source), replaced), target);
    else if (stats.isFile())
      await copyFile(source, target, stats, wish, replaced?.files.has(path) === true);
    else throw new Error(`${source} is no file, folder or link`);
  }
  // A folder that is read-only takes no files.
  for (const [path, mode] of folders.reverse()) fs.chmodSync(path, mode);
}

async function copyFile(
  source: string,
  target: string,
  stats: fs.BigIntStats,
  { isReadOnly, isLinked, replaced }: CopyWish,
  isReplaced: boolean,
): Promise<void> {
  // Another name of a file that is to be read-only may be in a store of the user.
  if (isLinked && !isReplaced && (!isReadOnly || stats.nlink === 1n)) {
    fs.linkSync(source, target);
    if (isReadOnly) fs.chmodSync(target, modeOf(stats, true, 0));
    return;
  }
  const how = COPYFILE_EXCL | COPYFILE_FICLONE;
  if (isReplaced)
    writeNew(
      target,
      Buffer.from(replace(readRegular(source).toString("latin1"), replaced), "latin1"),
    );
  else if (stats.size > QUICK_BYTES_MAX) await fs.promises.copyFile(source, target, how);
  else fs.copyFileSync(source, target, how);
  fs.chmodSync(target, modeOf(stats, isReadOnly, 0o200));
  // Compilers compare times.
  fs.utimesSync(target, Number(stats.atimeNs) / 1e9, Number(stats.mtimeNs) / 1e9);
}

function modeOf({ mode }: fs.BigIntStats, isReadOnly: boolean, least: number): number {
  const bits = Number(mode) & 0o777;
  return isReadOnly ? bits & ~0o222 : bits | least;
}

/** A longer path that begins with this text is another one. */
function replace(text: string, wish: CopyWish["replaced"]): string {
  if (wish === undefined) return text;
  const [from, to] = [wish.from, wish.to].map((one) => Buffer.from(one).toString("latin1"));
  return text
    .split(from as string)
    .reduce((before, after) => `${before}${/^[\w.-]/.test(after) ? from : to}${after}`);
}

export interface TreeFacts {
  /** Changes with each change of a file in it. */
  stamp: string;
  /** Bytes on the disk. */
  bytes: number;
}

/** @param isLinked true for files that get and lose other names: each such change changes their ctime. @throws a system error */
export async function factsOfTree(root: string, isLinked: boolean): Promise<TreeFacts> {
  const hash = createHash("sha256");
  let bytes = 0n;
  for await (const { path, stats } of walkTree(root)) {
    const { ino, size, mtimeNs, ctimeNs, mode, blocks } = stats;
    const target = stats.isSymbolicLink() ? fs.readlinkSync(join(root, path)) : "";
    const file = stats.isFile() ? [ino, size, mtimeNs, isLinked ? 0n : ctimeNs] : [];
    hash.update(`${[path, mode, target, ...file].join("\0")}\n`);
    bytes += blocks * 512n;
  }
  return { stamp: hash.digest("hex"), bytes: Number(bytes) };
}

/** Text files of the folder that contain this text, by their paths in it. @throws a system error */
export async function filesThatName(root: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { path, stats } of walkTree(root)) {
    if (!stats.isFile() || stats.size > TEXT_BYTES_MAX) continue;
    const bytes = readRegular(join(root, path));
    if (bytes.includes(text) && !bytes.includes(0)) found.push(path);
  }
  return found;
}

/** Whether files in this folder can share their bytes. @throws a system error */
export function hasReflinks(dir: string): boolean {
  const probe = fs.mkdtempSync(join(dir, ".probe-"));
  try {
    writeNew(join(probe, "a"), "reflink");
    fs.copyFileSync(join(probe, "a"), join(probe, "b"), COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    fs.rmSync(probe, { recursive: true, force: true });
  }
}
