/**
 * Allows one supervisor per state tree. The lock keeps a second one from starting. It is a convenience, not a mutex: the protocol
 * works with any number of supervisors, and a supervisor that finds another nonce in supervisor.json stops.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import lockfile from "proper-lockfile";
import type { SupervisorDocument } from "../../core/documents.ts";
import { ErrSupervisorRunning, systemCode } from "../../core/errors.ts";
import { supervisorOf } from "../../core/saved-documents.ts";
import { readDocument } from "../../host/documents.ts";
import { watchedFs } from "../../host/private-fs.ts";
import { statOf } from "../../host/regular-file.ts";
import { judgeIn, livesElsewhere } from "../../host/tree-id.ts";

const STALE_MS = 10_000;
const UPDATE_MS = 2500;
/** How long a supervisor that has just taken the lock may take to write its document (ms). */
const INTRODUCTION_MS = 1000;

/** How often a lock may vanish while we take it, and how often we may remove the lock of a dead owner. */
const ROBBED_MAX = 50;
const REMOVED_MAX = 3;

export class SupervisorLock {
  private readonly stateDir: string;
  private readonly path: string;
  private release: () => Promise<void> = () => Promise.resolve();
  /** Set when the lock was lost: another process believed us dead. */
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
        // Between our making the lock and our look at it, another starter removed it as a dead process's lock. Or the whole tree is
        // gone.
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
      fs: watchedFs({
        // A missing lock does not count as refused by the disk.
        stat: (error) => {
          this.isRefused ||= isRefusal(error);
        },
        utimes: (error) => {
          this.isRefused = isRefusal(error);
        },
      }),
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

  /** Takes the lock again after the disk did not let us renew it. If another process renews the lock from now on, that process holds it. */
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

/** The live supervisor that holds the lock. */
async function findHolder(
  stateDir: string,
  path: string,
  lockPath: string,
): Promise<SupervisorDocument | undefined> {
  const fromMs = performance.now();
  const lockMtimeMs = mtimeOf(lockPath);
  for (;;) {
    let limitMs = INTRODUCTION_MS;
    const document = readDocument(path, supervisorOf);
    if (document !== undefined && document.status !== "stopped") {
      if (livesElsewhere(document, stateDir)) {
        // The holder runs the original of this tree, which is a copy. The lock was copied too, and no process renews it.
        if (mtimeOf(lockPath) !== lockMtimeMs) return document;
        limitMs = 2 * UPDATE_MS;
      } else {
        if (judgeIn(stateDir, document) !== "dead") return document;
        if (isLockOf(document, lockPath)) return undefined;
      }
    }
    // Between taking the lock and writing the document there is a moment without the document.
    if (performance.now() > fromMs + limitMs) return undefined;
    await wait(50);
  }
}

function mtimeOf(path: string): number | undefined {
  return statOf(path)?.mtimeMs;
}

/** Undefined also when the disk cannot be read. */
function mtimeIfKnown(path: string): number | undefined {
  try {
    return mtimeOf(path);
  } catch {
    return undefined;
  }
}

/** True when the document was written after the lock was taken: both then belong to the same process. */
function isLockOf(document: SupervisorDocument, lockPath: string): boolean {
  const stats = statOf(lockPath);
  return stats !== undefined && Date.parse(document.heartbeat_at) >= stats.birthtimeMs;
}

function isRefusal(error: unknown): boolean {
  return error !== null && systemCode(error) !== "ENOENT";
}
