/**
 * One supervisor a state tree. The lock keeps two from starting; it is a convenience, not a mutex: the protocol holds
 * with any number of supervisors, and a supervisor that finds another nonce in supervisor.json steps down.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import lockfile from "proper-lockfile";
import type { SupervisorDocument } from "../../core/documents.ts";
import { ErrSupervisorRunning, systemCode } from "../../core/errors.ts";
import { supervisorOf } from "../../core/saved-documents.ts";
import { readDocument } from "../../host/documents.ts";
import { privateFs } from "../../host/private-fs.ts";
import { judgeIn, livesElsewhere } from "../../host/tree-id.ts";

const STALE_MS = 10_000;
const UPDATE_MS = 2500;
/** Time that a supervisor which has just taken the lock needs to say who it is (ms). */
const INTRODUCTION_MS = 1000;

/** So often a lock may vanish while it is taken, and so often that of a dead owner may be removed. */
const ROBBED_MAX = 50;
const REMOVED_MAX = 3;

export class SupervisorLock {
  private readonly stateDir: string;
  private readonly path: string;
  private release: () => Promise<void> = () => Promise.resolve();
  /** Set when the lock was lost: another process took us for dead. */
  isCompromised = false;
  /** The disk refused the last renewal, but may still show the new time. */
  private isRefused = false;
  private isFreed = false;

  private constructor(stateDir: string, path: string) {
    this.stateDir = stateDir;
    this.path = path;
  }

  /** @throws ErrSupervisorRunning when a live supervisor holds it */
  static async acquire(stateDir: string, documentPath: string): Promise<SupervisorLock> {
    const lockPath = join(stateDir, "supervisor.lock");
    for (let robbed = 0, removed = 0; ; ) {
      try {
        const lock = new SupervisorLock(stateDir, lockPath);
        await lock.take();
        return lock;
      } catch (error) {
        const code = systemCode(error);
        // Another starter took it for a dead one's, between our making it and our looking at it. Or the whole tree is gone.
        if (code === "ENOENT" && robbed++ < ROBBED_MAX && fs.existsSync(stateDir)) continue;
        if (code !== "ELOCKED") throw error;
      }
      const holder = await findHolder(stateDir, documentPath, lockPath);
      if (holder !== undefined || removed === REMOVED_MAX) {
        throw new ErrSupervisorRunning(
          `a supervisor${holder === undefined ? "" : ` (pid ${holder.pid}, since ${holder.started_at})`} runs this state tree`,
          {
            path: stateDir,
            phase: "start",
            hint: "use it, stop it with `mailchute stop`, or choose another --state",
          },
        );
      }
      // Its owner is provably dead: no need to wait until the lock looks old.
      removed++;
      fs.rmSync(lockPath, { recursive: true, force: true });
    }
  }

  private async take(): Promise<void> {
    let isTaken = false;
    this.release = await lockfile.lock(this.stateDir, {
      lockfilePath: this.path,
      realpath: false,
      fs: { ...privateFs, ...this.watchedCalls() },
      stale: STALE_MS,
      update: UPDATE_MS,
      retries: 0,
      onCompromised: () => {
        if (!isTaken) return;
        if (this.isRefused) void this.takeAgain();
        else this.isCompromised = true;
      },
    });
    isTaken = true;
  }

  /** The calls that renew it. That the lock is gone is no refusal. */
  private watchedCalls(): object {
    const isRefusal = (error: unknown): boolean => error !== null && systemCode(error) !== "ENOENT";
    return {
      stat: (path: string, done: (error: unknown, stats?: fs.Stats) => void) =>
        fs.stat(path, (error, stats) => {
          this.isRefused ||= isRefusal(error);
          done(error, stats);
        }),
      utimes: (path: string, atime: Date, mtime: Date, done: fs.NoParamCallback) =>
        fs.utimes(path, atime, mtime, (error) => {
          this.isRefused = isRefusal(error);
          done(error);
        }),
    };
  }

  /** No other process took it: the disk did not let us renew it. One that renews it from now on has it. */
  private async takeAgain(): Promise<void> {
    let seenMs: number | undefined;
    while (!this.isFreed) {
      await wait(UPDATE_MS, undefined, { ref: false });
      try {
        await this.take();
        return;
      } catch (error) {
        const nowMs = systemCode(error) === "ELOCKED" ? mtimeIfKnown(this.path) : undefined;
        if (nowMs === undefined) continue;
        seenMs ??= nowMs;
        if (nowMs === seenMs) continue;
        this.isCompromised = true;
        return;
      }
    }
  }

  async free(): Promise<void> {
    this.isFreed = true;
    try {
      await this.release();
    } catch {
      // Another process has taken it over.
    }
  }
}

/** The live supervisor behind a held lock. */
async function findHolder(
  stateDir: string,
  path: string,
  lockPath: string,
): Promise<SupervisorDocument | undefined> {
  const fromMs = performance.now();
  const lockMtimeMs = mtimeOf(lockPath);
  for (;;) {
    let limitMs = INTRODUCTION_MS;
    const document = supervisorOf(readDocument(path));
    if (document !== undefined && document.status !== "stopped") {
      if (livesElsewhere(document, stateDir)) {
        // It runs the tree that this one is a copy of. Then no process renews the lock, which was copied, too.
        if (mtimeOf(lockPath) !== lockMtimeMs) return document;
        limitMs = 2 * UPDATE_MS;
      } else {
        if (judgeIn(stateDir, document) !== "dead") return document;
        if (isLockOf(document, lockPath)) return undefined;
      }
    }
    // Between taking the lock and writing the document there is a moment without either.
    if (performance.now() > fromMs + limitMs) return undefined;
    await wait(50);
  }
}

function mtimeOf(path: string): number | undefined {
  return fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** Undefined, too, when the disk does not say. */
function mtimeIfKnown(path: string): number | undefined {
  try {
    return mtimeOf(path);
  } catch {
    return undefined;
  }
}

/** True when the document was written after the lock was taken: then both are of the same process. */
function isLockOf(document: SupervisorDocument, lockPath: string): boolean {
  const stats = fs.statSync(lockPath, { throwIfNoEntry: false });
  return stats !== undefined && Date.parse(document.heartbeat_at) >= stats.birthtimeMs;
}
