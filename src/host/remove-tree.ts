/** Removes a directory and its contents one name at a time, so that a directory with a million names does not block its caller. */
import fs from "node:fs";

/** Below this depth everything is removed at once, because each level keeps a descriptor open. */
const DEPTH_MAX = 64;
const SLASH = Buffer.from("/");

/**
 * Yields after each name. Leaves files that it cannot remove, such as those that a container made as root, and removes the rest.
 * @returns whether nothing is left
 */
export function* removeTree(
  path: string | Buffer,
  depth = 0,
): Generator<undefined, boolean, unknown> {
  const dir = Buffer.from(path);
  // A link leads to files that are not in the directory.
  if (depth === 0 && isLink(dir)) return isDone(() => fs.unlinkSync(dir));
  openUp(dir);
  if (depth >= DEPTH_MAX) return isDone(() => fs.rmSync(dir.toString(), { recursive: true }));
  let handle: fs.Dir;
  try {
    // Some names are not UTF-8; the types only know names that are.
    handle = fs.opendirSync(dir as unknown as string, { encoding: "buffer" as BufferEncoding });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
  try {
    for (let entry = handle.readSync(); entry !== null; entry = handle.readSync()) {
      const child = Buffer.concat([dir, SLASH, entry.name as unknown as Buffer]);
      if (entry.isDirectory()) yield* removeTree(child, depth + 1);
      else isDone(() => fs.unlinkSync(child));
      yield;
    }
  } catch {
    // A directory that cannot be listed stays.
  } finally {
    handle.closeSync();
  }
  return isDone(() => fs.rmdirSync(dir));
}

function isLink(path: Buffer): boolean {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** A program may have closed a folder, as Go does with its modules. */
function openUp(dir: Buffer): void {
  isDone(() => {
    const stats = fs.lstatSync(dir);
    if (stats.isDirectory() && (stats.mode & 0o700) !== 0o700) fs.chmodSync(dir, 0o700);
  });
}

function isDone(step: () => void): boolean {
  try {
    step();
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
