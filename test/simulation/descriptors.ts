/**
 * Stands in for node:fs where it is called past the storage port: batches and their results are read and written piece by piece.
 * Paths of the simulated disk get descriptors of ours; all else goes to the real one.
 */
import type * as RealFs from "node:fs";
import { systemCode } from "../../src/core/errors.ts";
import type { FileFacts, Storage } from "../../src/mailbox/files/storage.ts";

/** What a process does with an open file, beside the storage port. */
export interface OpenFiles {
  /** All that is in the file now: what is appended later is read by who opens it later. */
  openToRead(path: string): { facts: FileFacts; bytes: Buffer };
  /** A new, empty file. @returns its inode */
  openNew(path: string): number;
  append(ino: number, bytes: Buffer): void;
  /** What is known of an open file, even if its name is gone. */
  lookAt(ino: number): FileFacts;
  /** Its bytes survive a power cut; its name need not. */
  syncData(ino: number): Promise<void>;
}

export type Port = Storage & OpenFiles;

type Open = { path: string } & ({ ino: number } | { facts: FileFacts; bytes: Buffer });

const SIMULATED = /^\/[mce]\//;
/** Above all that a kernel gives. */
const FIRST_FD = 1_000_000;

let port: Port | undefined;
let open = new Map<number, Open>();
let lastFd = FIRST_FD;
/** O_EXCL. From `overDisk`: to import node:fs here would wait for itself. */
let mustBeNew = 0;

/** From here on, the process behind `next` runs; it has nothing open. */
export function usePort(next: Port): void {
  port = next;
  open = new Map();
  lastFd = FIRST_FD;
}

function portNow(): Port {
  if (port === undefined) throw new Error("no process runs");
  return port;
}

function at(fd: number): Open {
  const file = open.get(fd);
  if (file === undefined) throw new Error(`descriptor ${fd} is not open`);
  return file;
}

function inoOf(fd: number): number {
  const file = at(fd);
  if (!("ino" in file)) throw new Error(`descriptor ${fd} is open to read`);
  return file.ino;
}

/** As much of a `Stats` as is asked for. */
function statsOf(facts: FileFacts): object {
  return {
    ...facts,
    isFile: () => facts.kind === "file",
    isDirectory: () => facts.kind === "directory",
  };
}

const OURS = {
  openSync(path: string, flags: number): number {
    const file: Open =
      (flags & mustBeNew) !== 0
        ? { path, ino: portNow().openNew(path) }
        : { path, ...portNow().openToRead(path) };
    open.set(++lastFd, file);
    return lastFd;
  },
  closeSync(fd: number): void {
    open.delete(fd);
  },
  writeSync(fd: number, bytes: Uint8Array, from: number, length: number): number {
    portNow().append(inoOf(fd), Buffer.from(bytes.subarray(from, from + length)));
    return length;
  },
  readSync(fd: number, to: Buffer, offset: number, length: number, position: number): number {
    const file = at(fd);
    return "bytes" in file ? file.bytes.copy(to, offset, position, position + length) : 0;
  },
  fstatSync(fd: number): object {
    const file = at(fd);
    return statsOf("facts" in file ? file.facts : portNow().lookAt(file.ino));
  },
  futimesSync(fd: number, _atimeS: number, mtimeS: number): void {
    try {
      portNow().touch(at(fd).path, mtimeS * 1000);
    } catch (error) {
      // Its name is gone, and with it all that its time could tell.
      if (systemCode(error) !== "ENOENT") throw error;
    }
  },
  fdatasync(fd: number, done: (error: unknown) => void): void {
    portNow()
      .syncData(inoOf(fd))
      .then(() => done(null), done);
  },
  statSync(path: string): object | undefined {
    const facts = portNow().look(path);
    return facts === undefined ? undefined : statsOf(facts);
  },
  rmSync(path: string): void {
    if (portNow().look(path) !== undefined) portNow().unlink(path);
  },
};

/** The whole module, for `vi.mock("node:fs")`. */
export function overDisk(real: typeof RealFs): object {
  const isOurs = (what: unknown): boolean =>
    typeof what === "number" ? what > FIRST_FD : SIMULATED.test(String(what));
  const fs: Record<string, unknown> = { ...real };
  mustBeNew = real.constants.O_EXCL;
  for (const [name, ours] of Object.entries(OURS)) {
    const theirs = real[name as keyof typeof OURS];
    fs[name] = (...args: unknown[]): unknown =>
      Reflect.apply(isOurs(args[0]) ? ours : theirs, undefined, args);
  }
  return { ...fs, default: fs };
}
