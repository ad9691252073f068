/**
 * One supervisor a state tree. The lock keeps two from starting; it is a convenience, not a mutex: the protocol holds
 * with any number of supervisors, and whoever finds another nonce in supervisor.json steps down.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import lockfile from "proper-lockfile";
import type { SupervisorDocument } from "../core/documents.ts";
import { ErrSupervisorRunning, systemCode } from "../core/errors.ts";
import { supervisorOf } from "../core/saved-documents.ts";
import { readDocument } from "../host/documents.ts";
import { judgeIn, livesElsewhere } from "../host/tree-id.ts";

const STALE_MS = 10_000;
const UPDATE_MS = 2500;
/** Time that a supervisor which has just taken the lock needs to say who it is (ms). */
const INTRODUCTION_MS = 1000;

/** So often a lock may vanish while it is taken; then it is the directory that is gone. */
const ROBBED_MAX = 2;

export class SupervisorLock {
  private readonly release: () => Promise<void>;
  /** Set when the lock was lost: somebody took us for dead. */
  isCompromised = false;

  private constructor(release: () => Promise<void>) {
    this.release = release;
  }

  /** @throws ErrSupervisorRunning when a live supervisor holds it */
  static async acquire(stateDir: string, documentPath: string): Promise<SupervisorLock> {
    const lockPath = join(stateDir, "supervisor.lock");
    for (let tries = 0; ; tries++) {
      let lock: SupervisorLock | undefined;
      try {
        const release = await lockfile.lock(stateDir, {
          lockfilePath: lockPath,
          realpath: false,
          stale: STALE_MS,
          update: UPDATE_MS,
          retries: 0,
          onCompromised: () => {
            if (lock !== undefined) lock.isCompromised = true;
          },
        });
        lock = new SupervisorLock(release);
        return lock;
      } catch (error) {
        const code = systemCode(error);
        // Another starter took it for a dead one's, between our making it and our looking at it.
        if (code === "ENOENT" && tries < ROBBED_MAX) continue;
        if (code !== "ELOCKED") throw error;
      }
      const holder = await findHolder(stateDir, documentPath, lockPath);
      if (holder !== undefined || tries > 2) {
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
      fs.rmSync(lockPath, { recursive: true, force: true });
    }
  }

  async free(): Promise<void> {
    try {
      await this.release();
    } catch {
      // Taken over by somebody else: theirs now.
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
        // It runs the tree that this one is a copy of. Then nobody renews the lock, which was copied, too.
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

/** True when the document was written after the lock was taken: then both are of the same process, and nobody is new. */
function isLockOf(document: SupervisorDocument, lockPath: string): boolean {
  const stats = fs.statSync(lockPath, { throwIfNoEntry: false });
  return stats !== undefined && Date.parse(document.heartbeat_at) >= stats.birthtimeMs;
}
