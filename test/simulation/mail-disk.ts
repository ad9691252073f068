/**
 * Stands in for node:fs and for the storage port below `/t`, over a file system in memory: mail is written past the port. Each call
 * asks first whether its process still lives, so a process can end at each of them.
 */
import type * as RealFs from "node:fs";
import type { FileFacts, Storage } from "../../src/mailbox/files/storage.ts";
import { MemoryDisk, memoryStorage, SystemError } from "./memory-storage.ts";

/** Called before each call. It throws when the process is dead. */
export type OnCall = (isChange: boolean) => void;

const ROOT = "/t";
/** Above all that a kernel gives. */
const FIRST_FD = 1_000_000;
const NOBODY: OnCall = () => {};

let disk = new MemoryDisk();
let onCall = NOBODY;
let open = new Map<number, { ino: number; path: string }>();
let lastFd = FIRST_FD;

/** From here on, calls go to this disk. */
export function useDisk(next: MemoryDisk): void {
  disk = next;
  open = new Map();
}

export function diskNow(): MemoryDisk {
  return disk;
}

export function onCalls(next: OnCall = NOBODY): OnCall {
  const before = onCall;
  onCall = next;
  return before;
}

function read<T>(call: () => T): T {
  onCall(false);
  return call();
}

function change<T>(call: () => T): T {
  onCall(true);
  return call();
}

function at(fd: number): { ino: number; path: string } {
  const file = open.get(fd);
  if (file === undefined) throw new SystemError("EBADF", String(fd));
  return file;
}

function statsOf(facts: FileFacts): object {
  return {
    ...facts,
    isFile: () => facts.kind === "file",
    isDirectory: () => facts.kind === "directory",
    isSymbolicLink: () => false,
  };
}

function lookOrThrow(path: string, isQuiet: boolean): object | undefined {
  const facts = disk.look(path);
  if (facts !== undefined) return statsOf(facts);
  if (isQuiet) return undefined;
  throw new SystemError("ENOENT", path);
}

const O_CREAT = 0o100;

/** The file of this name, made when it is missing. */
function makeFile(path: string): number {
  const known = disk.look(path);
  if (known !== undefined) return known.ino;
  return change(() => disk.createEmpty(path));
}

const bytesOf = (data: string | Uint8Array): Buffer => Buffer.from(data as Uint8Array);

const OURS = {
  openSync(path: string, flags: string | number = "r"): number {
    const makes = typeof flags === "number" && (flags & O_CREAT) !== 0;
    const known = read(() => disk.look(path));
    if (known === undefined && !makes) throw new SystemError("ENOENT", path);
    // First: another process may act before this call.
    const ino = known?.ino ?? makeFile(path);
    open.set(++lastFd, { ino, path });
    return lastFd;
  },
  closeSync(fd: number): void {
    open.delete(fd);
  },
  readSync(fd: number, to: Buffer, offset: number, length: number, position: number): number {
    return read(() => disk.bytesOf(at(fd).ino).copy(to, offset, position, position + length));
  },
  readFileSync(what: string | number, encoding?: string): string | Buffer {
    const bytes = read(() => {
      if (typeof what === "number") return disk.bytesOf(at(what).ino);
      return disk.read(what, Number.MAX_SAFE_INTEGER).bytes ?? Buffer.alloc(0);
    });
    return encoding === undefined ? bytes : bytes.toString("utf8");
  },
  /** All descriptors that mail writes to append. */
  writeSync(fd: number, data: string | Uint8Array): number {
    const bytes = bytesOf(data);
    change(() => disk.append(at(fd).ino, bytes));
    return bytes.length;
  },
  writeFileSync(what: string | number, data: string | Uint8Array): void {
    if (typeof what === "number") {
      change(() => disk.append(at(what).ino, bytesOf(data)));
      return;
    }
    const ino = makeFile(what);
    change(() => disk.fill(ino, bytesOf(data)));
  },
  fstatSync: (fd: number): object => read(() => statsOf(disk.lookAt(at(fd).ino))),
  statSync: (path: string, options?: { throwIfNoEntry?: boolean }): object | undefined =>
    read(() => lookOrThrow(path, options?.throwIfNoEntry === false)),
  lstatSync: (path: string, options?: { throwIfNoEntry?: boolean }): object | undefined =>
    read(() => lookOrThrow(path, options?.throwIfNoEntry === false)),
  existsSync: (path: string): boolean => read(() => disk.look(path) !== undefined),
  realpathSync: (path: string): string => path,
  readdirSync: (path: string): string[] => read(() => disk.list(path)),
  mkdirSync(path: string): void {
    if (read(() => disk.look(path)) !== undefined) throw new SystemError("EEXIST", path);
    change(() => disk.makeDir(path, 1));
  },
  linkSync(from: string, to: string): void {
    change(() => disk.link(from, to));
  },
  renameSync(from: string, to: string): void {
    change(() => disk.rename(from, to));
  },
  rmSync(path: string): void {
    if (read(() => disk.look(path)) !== undefined) change(() => disk.unlink(path));
  },
};

/** The whole module, for `vi.mock("node:fs")`. */
export function overMailDisk(real: typeof RealFs): object {
  const isOurs = (what: unknown): boolean =>
    typeof what === "number"
      ? what > FIRST_FD
      : String(what) === ROOT || String(what).startsWith(`${ROOT}/`);
  const fs: Record<string, unknown> = { ...real };
  for (const [name, ours] of Object.entries(OURS)) {
    const theirs = real[name as keyof typeof OURS] as (...args: never[]) => unknown;
    fs[name] = (...args: unknown[]): unknown =>
      Reflect.apply(isOurs(args[0]) ? ours : theirs, undefined, args);
  }
  return { ...fs, default: fs };
}

const CHANGING: ReadonlySet<string> = new Set("create link rename unlink touch makeDir".split(" "));

/** The storage port, over whichever disk is in use. */
export function mailStorage(): Storage {
  const names = Object.keys(memoryStorage(disk)) as (keyof Storage)[];
  const calls = names.map((name) => [
    name,
    (...args: unknown[]): unknown => {
      onCall(CHANGING.has(name));
      return Reflect.apply(memoryStorage(disk)[name], undefined, args);
    },
  ]);
  return Object.fromEntries(calls) as Storage;
}

/** In the place of `write-file-atomic`, which is called for a staged file only. */
export const ATOMIC = {
  default: { sync: (path: string, text: string): void => OURS.writeFileSync(path, text) },
};
