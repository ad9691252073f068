/** Reads each line that a journal got after a place, even if the journal was rotated since. Visits no line twice and changes nothing. */

import { statOf } from "../host/regular-file.ts";
import { rotatedOf } from "./rotated.ts";
import { JournalTail } from "./tail.ts";

/** The place at which reading continues. */
export interface JournalPlace {
  ino: number;
  offset: number;
}

/** How much is read at once (bytes). */
const PIECE_BYTES = 1024 * 1024;

interface File {
  path: string;
  ino: number;
  size: number;
}

export interface ReadOn {
  /** The place up to which lines were visited. */
  place: JournalPlace;
  /** How many bytes follow that place. */
  leftBytes: number;
  /** Lines that were too long to be read. */
  badCount: number;
}

/**
 * Visits each complete line after `from`. If the file of `from` is gone, it begins with the current file, as `JournalTail` does.
 * @param bytesMax stops after about so many bytes @throws a system error
 */
export function readOn(
  path: string,
  from: JournalPlace,
  bytesMax: number,
  visit: (line: string) => void,
): ReadOn {
  let place = from;
  let left = bytesMax;
  let leftBytes = 0;
  let badCount = 0;
  for (const file of filesFrom(path, from.ino)) {
    const offset = file.ino === from.ino ? from.offset : 0;
    if (left <= 0) {
      leftBytes += Math.max(0, file.size - offset);
      continue;
    }
    const tail = new JournalTail(file.path, offset, file.ino);
    try {
      for (let before = -1; left > 0 && before !== tail.offset; ) {
        before = tail.offset;
        const lines = tail.nextLines(PIECE_BYTES);
        // The file was rotated just now: its rest is under another name.
        if (tail.ino !== file.ino) {
          const rest = readOn(path, place, left, visit);
          return { ...rest, badCount: rest.badCount + badCount };
        }
        // A file that has shrunk is read from its beginning.
        left -= Math.abs(tail.offset - before);
        for (const line of lines) visit(line);
        place = { ino: tail.ino, offset: tail.offset };
      }
      leftBytes += Math.max(0, sizeOf(file.path) - tail.offset);
    } finally {
      tail.close();
    }
    badCount += tail.counts.bad;
  }
  return { place, leftBytes, badCount };
}

/** How much a journal got after this place (bytes). */
export function bytesAfter(path: string, from: JournalPlace): number {
  const sizes = filesFrom(path, from.ino).map(({ ino, size }) =>
    Math.max(0, size - (ino === from.ino ? from.offset : 0)),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The file with this inode and the later ones, the oldest first; only the current one when that file is gone. */
function filesFrom(path: string, ino: number): File[] {
  const current = lookAt(path);
  if (current?.ino === ino) return [current];
  const rotated = rotatedOf(path).flatMap((one) => lookAt(one) ?? []);
  const first = rotated.findIndex((one) => one.ino === ino);
  const before = first === -1 ? [] : rotated.slice(first);
  return current === undefined ? before : [...before, current];
}

function lookAt(path: string): File | undefined {
  const stats = statOf(path);
  return stats?.isFile() === true ? { path, ino: stats.ino, size: stats.size } : undefined;
}

function sizeOf(path: string): number {
  return lookAt(path)?.size ?? 0;
}
