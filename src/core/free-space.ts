/** How much of a disk must stay free for new work to start: bytes, and files (inodes). Pure. */

import { bytesText } from "./bytes-text.ts";

/** What a disk has: bytes and files, in all and free. A system that counts no files has 0 in all. */
export interface Space {
  size: number;
  free: number;
  files: number;
  freeFiles: number;
}

/** What a disk has too little of: as it stands in `supervisor.json`. With so much as is wanted, new work starts again. */
export type Lack =
  | { free_bytes: number; wanted_bytes: number }
  | { free_files: number; wanted_files: number };

/** A disk that has too little room. `path`: a directory on it. */
export type Shortage = { path: string } & Lack;

/** So many more files a disk must take for new work to start: a run makes some ten, and many runs start at once. */
const FILES_MIN = 2000;
/** Of a small disk at most this part must stay free. */
const PART_MAX = 1 / 8;
/** When work has stopped, it begins again with this much more: what ends just then must not stop it again. */
const MORE = 1.1;
/** With less than this part of what must stay free, what runs may not write on either. */
const LAST_PART = 1 / 4;

/** Some file systems have no size, and some count no files: 0. */
function leastOf(all: number, min: number): number {
  return Math.floor(Math.min(min, all * PART_MAX));
}

/** @returns how much is wanted, when less is free */
function wantedOf(all: number, free: number, min: number, wasShort: boolean): number | undefined {
  const least = leastOf(all, min);
  const wanted = wasShort ? Math.floor(least * MORE) : least;
  return free < wanted ? Math.floor(least * MORE) : undefined;
}

/**
 * @param bytesMin setting `free_bytes_min`
 * @param wasShort whether it had too little at the last look
 * @returns what it has too little of; undefined: there is room, or the system does not tell
 */
export function lackOf(space: Space, bytesMin: number, wasShort: boolean): Lack | undefined {
  const bytes = wantedOf(space.size, space.free, bytesMin, wasShort);
  if (bytes !== undefined) return { free_bytes: space.free, wanted_bytes: bytes };
  const files = wantedOf(space.files, space.freeFiles, FILES_MIN, wasShort);
  return files === undefined ? undefined : { free_files: space.freeFiles, wanted_files: files };
}

/** What may still be written before the disk is nearly full (bytes and files); below 0: it is. */
export interface Room {
  bytes: number;
  files: number;
}

/** @param bytesMin setting `free_bytes_min`; 0 = it is never nearly full */
export function roomOf({ size, free, files, freeFiles }: Space, bytesMin: number): Room {
  const left = (all: number, now: number, min: number): number =>
    bytesMin === 0 || all === 0 ? Number.POSITIVE_INFINITY : now - leastOf(all, min) * LAST_PART;
  return { bytes: left(size, free, bytesMin), files: left(files, freeFiles, FILES_MIN) };
}

/** For people: what is free, and with how much it goes on. */
export function lackText(lack: Lack): { free: string; wanted: string } {
  return "free_files" in lack
    ? { free: `${lack.free_files} files`, wanted: `${lack.wanted_files} files` }
    : { free: bytesText(lack.free_bytes), wanted: bytesText(lack.wanted_bytes) };
}

/** For people. */
export function explainShortage(shortage: Shortage): string {
  const { free, wanted } = lackText(shortage);
  const why = "free_files" in shortage ? "inodes" : "setting free_bytes_min";
  return (
    `intake stopped: disk: ${shortage.path} has ${free} free, and nothing new starts below ` +
    `${wanted} (${why}); what runs goes on`
  );
}
