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
  const tail = new JournalTail(path, from.offset, from.ino);
  let left = bytesMax;
  let place = from;
  try {
    while (left > 0) {
      const lines = tail.nextLines(PIECE_BYTES, 0);
      for (const line of lines) visit(line);
      const { ino, offset } = tail;
      if (ino === place.ino && offset === place.offset) break;
      // A file that has shrunk is read from its beginning.
      left -= ino === place.ino ? Math.abs(offset - place.offset) : offset;
      place = { ino, offset };
    }
  } finally {
    tail.close();
  }
  return { place, leftBytes: bytesAfter(path, place), badCount: tail.counts.bad };
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
