/** Decides whether a disk has enough free bytes and free files (inodes) for new work to start. Pure. */

import { bytesText } from "./bytes-text.ts";

/** The size of a disk in bytes and files, and how much is free. `files` is 0 on a file system that does not count files. */
export interface Space {
  size: number;
  free: number;
  files: number;
  freeFiles: number;
}

/** What a disk has too little of, as written to `supervisor.json`. New work starts again when the wanted number is free. */
export type Lack =
  | { free_bytes: number; wanted_bytes: number }
  | { free_files: number; wanted_files: number };

/** A disk that has too little room; `path` is a directory on it. */
export type Shortage = { path: string } & Lack;

/** New work starts only when the disk can hold this many more files. A run makes about ten, and many runs start at once. */
const FILES_MIN = 2000;
/** On a small disk, at most this part must stay free. */
const PART_MAX = 1 / 8;
/** Stopped work begins again when this many times the minimum is free, so that a small change does not stop it again at once. */
const MORE = 1.1;
/** When less than this part of the minimum is free, programs that run may not write more either. */
const LAST_PART = 1 / 4;

/** How much must stay free. 0 for a file system without a size, or one that does not count files (`all` is 0). */
function leastOf(all: number, min: number): number {
  return Math.floor(Math.min(min, all * PART_MAX));
}

/** @returns how much must be free before work starts; undefined when enough is free */
function wantedOf(all: number, free: number, min: number, wasShort: boolean): number | undefined {
  const least = leastOf(all, min);
  const wanted = wasShort ? Math.floor(least * MORE) : least;
  return free < wanted ? Math.floor(least * MORE) : undefined;
}

/**
 * @param bytesMin setting `free_bytes_min`
 * @param wasShort whether the disk had too little room at the last check
 * @returns what the disk has too little of; undefined when it has enough, or when the system does not report it
 */
export function lackOf(space: Space, bytesMin: number, wasShort: boolean): Lack | undefined {
  const bytes = wantedOf(space.size, space.free, bytesMin, wasShort);
  if (bytes !== undefined) return { free_bytes: space.free, wanted_bytes: bytes };
  const files = wantedOf(space.files, space.freeFiles, FILES_MIN, wasShort);
  return files === undefined ? undefined : { free_files: space.freeFiles, wanted_files: files };
}

/** How many bytes and files may still be written before the disk is nearly full. Below 0, it is nearly full. */
export interface Room {
  bytes: number;
  files: number;
}

/** @param bytesMin setting `free_bytes_min`; 0 = the disk never counts as nearly full */
export function roomOf({ size, free, files, freeFiles }: Space, bytesMin: number): Room {
  const left = (all: number, now: number, min: number): number =>
    bytesMin === 0 || all === 0 ? Number.POSITIVE_INFINITY : now - leastOf(all, min) * LAST_PART;
  return { bytes: left(size, free, bytesMin), files: left(files, freeFiles, FILES_MIN) };
}

/** Texts for people: how much is free, and how much must be free for work to start again. */
function lackText(lack: Lack): { free: string; wanted: string } {
  return "free_files" in lack
    ? { free: `${lack.free_files} files`, wanted: `${lack.wanted_files} files` }
    : { free: bytesText(lack.free_bytes), wanted: bytesText(lack.wanted_bytes) };
}

/** The message about a shortage, for people. */
export function explainShortage(shortage: Shortage): string {
  const { free, wanted } = lackText(shortage);
  const why = "free_files" in shortage ? "inodes" : "setting free_bytes_min";
  return (
    `intake stopped: disk: ${shortage.path} has ${free} free, and nothing new starts below ` +
    `${wanted} (${why}); running tasks go on`
  );
}
