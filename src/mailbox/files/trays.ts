/** Where a mailbox's directories are, and whether they can be trusted; the port for what follows from a settled task. Makes the directories; moves no files. */
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { ErrMailboxDir, messageOf, systemCode } from "../../core/errors.ts";
import type { ProcessingName } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { Task } from "../../core/task.ts";
import { systemClock } from "../../host/system-clock.ts";
import { nodeStorage } from "./node-storage.ts";
import type { Storage } from "./storage.ts";

export const TRAYS = ["inbox", "processing", "outbox", "failed"] as const;
export type Tray = (typeof TRAYS)[number];

/** `power`: acknowledged work survives a power cut. `process`: it survives the death of any process. */
export type Durability = "power" | "process";

/** The directories and rules on which every verb of the mailbox works. */
export interface Trays {
  dir: string;
  inbox: string;
  processing: string;
  outbox: string;
  failed: string;
  tmp: string;
  storage: Storage;
  clock: Clock;
  durability: Durability;
  /** Owners whose files may be run, besides our own uid and root. */
  uids: readonly number[];
  /** Finds the callbacks of a settled task; undefined: there are none. */
  follow?: Follow;
}

export interface OpenOptions {
  durability?: Durability;
  storage?: Storage;
  clock?: Clock;
  /**
   * Uids that may own the directories and the files that are run, besides our own uid and root. Left out: any user may own the
   * directories, and a file is run only if it is ours or root's.
   */
  uids?: readonly number[];
}

/**
 * Makes the missing trays and checks that they can hold the protocol.
 * @throws ErrMailboxDir when one is not a directory, not writable, writable by every user, another user's, or on another file
 *   system
 */
export function openTrays(dir: string, options: OpenOptions = {}): Trays {
  const trays = traysAt(dir, options);
  makeStateDir(dir, trays.storage);
  makeTrays(trays);
  checkDirs(trays, [dir, ...dirsOf(trays)], options.uids);
  checkWritable(trays);
  return trays;
}

/**
 * Opens the trays for reading only: it never makes a directory, and a missing one counts as empty.
 * @throws ErrMailboxDir when an existing one cannot be trusted
 */
export function viewTrays(dir: string, options: OpenOptions = {}): Trays {
  const trays = traysAt(dir, { ...options, storage: missingIsEmpty(options.storage) });
  const there = [dir, ...dirsOf(trays)].filter((path) => trays.storage.look(path) !== undefined);
  checkDirs(trays, there, options.uids);
  return trays;
}

function missingIsEmpty(storage = nodeStorage): Storage {
  const orEmpty = <T>(step: () => T, empty: T): T => {
    try {
      return step();
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      return empty;
    }
  };
  return {
    ...storage,
    list: (dir) => orEmpty(() => storage.list(dir), []),
    walk: (dir) => orEmpty(() => storage.walk(dir), { next: () => [], close: () => {} }),
  };
}

/** Only computes the paths, for a mailbox that must not be touched. */
export function traysAt(dir: string, options: OpenOptions = {}): Trays {
  return {
    dir,
    inbox: join(dir, "inbox"),
    processing: join(dir, "processing"),
    outbox: join(dir, "outbox"),
    failed: join(dir, "failed"),
    tmp: join(dir, ".tmp"),
    storage: options.storage ?? nodeStorage,
    clock: options.clock ?? systemClock,
    durability: options.durability ?? "power",
    uids: options.uids ?? [],
  };
}

/**
 * Makes missing trays and the mailbox again; does nothing when all are there. It does not make the directory around the mailbox: a
 * state tree that was moved away must not appear again.
 * @throws ErrMailboxDir
 */
export function makeTrays(trays: Trays): void {
  for (const path of [trays.dir, ...dirsOf(trays)]) makeStateDir(path, trays.storage, 1);
}

/**
 * Makes the directory of a state tree, or one around it; does nothing when it is there.
 * @param missingMax see `Storage.makeDir`
 * @throws ErrMailboxDir
 */
export function makeStateDir(path: string, storage = nodeStorage, missingMax?: number): void {
  try {
    if (storage.look(path) === undefined) storage.makeDir(path, missingMax);
  } catch (error) {
    throw new ErrMailboxDir(`cannot make the directory ${path}: ${messageOf(error)}`, {
      path,
      phase: "open",
      cause: error,
      hint: "check its rights and the disk, or choose another place with --state",
    });
  }
}

/** The path of one name in a tray. Plain concatenation: `join` also normalizes the path, which took a tenth of a task's time. */
export function pathIn(dir: string, name: string): string {
  return `${dir}/${name}`;
}

export function dirsOf(trays: Trays): string[] {
  return [trays.inbox, trays.processing, trays.outbox, trays.failed, trays.tmp];
}

/**
 * Checks that programs may safely be run from the directory around the trays, which holds the settings and the plan. If every user
 * may create files there, the sticky bit does not help: any user could create a missing plan.
 * @throws ErrMailboxDir
 */
export function checkStateDir(dir: string, uids: readonly number[], storage = nodeStorage): void {
  const facts = storage.look(dir);
  if (facts === undefined || facts.kind !== "directory") return;
  const fault =
    (facts.mode & 0o002) !== 0 ? OPEN_TO_ALL : explainStranger(facts.uid, uids, process.getuid?.());
  if (fault !== undefined)
    throw new ErrMailboxDir(`${dir} ${fault}`, {
      path: dir,
      phase: "open",
      hint: hintFor(fault, dir),
    });
}

const OPEN_TO_ALL = "is writable by every user: any user could run programs as you";

function hintFor(fault: string, path: string): string {
  return fault === OPEN_TO_ALL
    ? `run: chmod o-w ${path}`
    : "run mailchute as its owner, give it to yourself with chown, or allow that uid in config.yaml (uids)";
}

function explainStranger(
  uid: number,
  uids: readonly number[],
  own: number | undefined,
): string | undefined {
  const isKnown = own === undefined || uid === own || uid === 0 || uids.includes(uid);
  return isKnown ? undefined : `belongs to uid ${uid}, who could run programs as you`;
}

function checkDirs(
  { dir, storage }: Trays,
  paths: readonly string[],
  uids: readonly number[] | undefined,
): void {
  let dev: number | undefined;
  for (const path of paths) {
    const facts = storage.look(path);
    const fail = (message: string, hint: string): ErrMailboxDir =>
      new ErrMailboxDir(`${path} ${message}`, { path, phase: "open", hint });
    if (facts === undefined) throw fail("is not there", "check that no program deletes it");
    if (facts.kind !== "directory") throw fail("is not a directory", "move away what is there");
    if ((facts.mode & 0o002) !== 0 && (facts.mode & 0o1000) === 0)
      throw fail(OPEN_TO_ALL, hintFor(OPEN_TO_ALL, path));
    const stranger =
      uids === undefined ? undefined : explainStranger(facts.uid, uids, process.getuid?.());
    if (stranger !== undefined) throw fail(stranger, hintFor(stranger, path));
    if (path === dir) continue;
    dev ??= facts.dev;
    if (facts.dev !== dev) {
      throw fail(
        "is on another file system than the other trays: moves would not be atomic",
        "keep all trays on one file system",
      );
    }
  }
}

function checkWritable(trays: Trays): void {
  const { storage } = trays;
  const probe = join(
    trays.tmp,
    `probe-${process.pid}-${Math.floor(trays.clock.random() * 2 ** 40).toString(36)}`,
  );
  try {
    storage.create(probe, Buffer.alloc(0));
    storage.unlink(probe);
  } catch (error) {
    const code = systemCode(error);
    // Another supervisor, whose clock is ahead, removed the probe as left over. So it was written, and the tray is writable.
    if (code === "ENOENT" && storage.look(trays.tmp) !== undefined) return;
    // A mailbox on a full disk is still usable: waiting tasks can be read and moved.
    if (code === "ENOSPC" || code === "EDQUOT") return;
    throw new ErrMailboxDir(`${trays.tmp} cannot be written: ${messageOf(error)}`, {
      path: trays.tmp,
      phase: "open",
      cause: error,
      hint: "check its owner and rights",
    });
  }
}

/** Runs one step. If a tray was deleted, makes the trays again and runs the step once more. */
export function withTrays<T>(trays: Trays, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    makeTrays(trays);
    return step();
  }
}

/** A settlement, as the port `Follow` sees it. */
export interface Ended {
  claim: { name: ProcessingName };
  status: "completed" | "failed";
  record: Buffer;
  /** Undefined for a batch, and for a file that holds no task. */
  task?: Task | undefined;
  recordAs?: string;
}

/**
 * Called for each settlement, so it decides from memory and makes no system call.
 * @returns undefined when nothing follows. Else the step to run when the record is visible: it runs before the marker is removed,
 *   and again after a crash in between
 */
export type Follow = (ended: Ended) => (() => Promise<void>) | undefined;

/** Called once in each process that settles tasks. */
export type MakeFollow = (place: FollowPlace) => Follow;

export interface FollowPlace {
  readonly trays: Trays;
  /** The folder `runs/`, which holds the files of each run. */
  readonly runs: string;
  readonly settings: Pick<Settings, "groups" | "on_success" | "on_failure" | "on_settled">;
  /** Tells people what could not be done. */
  readonly tell: (message: string) => void;
}
