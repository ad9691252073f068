/** The worker process: makes a Worker, tells the world of it, and connects it to a supervisor or to the directory. */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import type { WorkerDocument } from "../core/documents.ts";
import { messageOf } from "../core/errors.ts";
import { isReadyFile } from "../core/names.ts";
import { supervisorOf } from "../core/saved-documents.ts";
import type { Settings } from "../core/settings.ts";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import { readDocument, removeDocument, replaceDocument } from "../host/documents.ts";
import type { Doorbell } from "../host/doorbell.ts";
import { ownerPrefix, runnerSequence, thisProcess, workerIdOf } from "../host/identity.ts";
import { addressSpaceMax } from "../host/memory-room.ts";
import { say } from "../host/say.ts";
import { makeThreads } from "../host/threads.ts";
import { isOtherTree, judgeIn, treeIdOf } from "../host/tree-id.ts";
import { checkStateDir, openTrays } from "../mailbox/trays.ts";
import type { ToSupervisor, ToWorker } from "./protocol.ts";
import { digestSettings } from "./settings-digest.ts";
import { Worker } from "./worker.ts";

export interface WorkerBoot {
  stateDir: string;
  mailboxDir: string;
  settings: Settings;
  slots: number;
  /** So many threads wait for its disk. */
  threads: number;
  /** True when a supervisor started it and speaks to it. */
  isSpawned: boolean;
}

/** How long a worker without a supervisor waits for work, or for a new supervisor, before it ends (ms). */
const ORPHAN_IDLE_MS = 30_000;
/** How long a worker that has stopped may take to leave by itself (ms). */
const LEAVE_MS = 50;

export function workerId(): string {
  return workerIdOf(ownerPrefix(thisProcess()));
}

/**
 * Runs until it is told to stop.
 * @returns the exit code
 * @throws what the system says when there is no room for its threads (EAGAIN), or the trays cannot be used; nothing is claimed then
 */
export async function runWorker(boot: WorkerBoot): Promise<number> {
  const { settings, slots, isSpawned } = boot;
  // A process that is short of them dies of it (or is ended by libuv) here, where it holds nothing.
  makeThreads(boot.threads);
  const tree = stateTree(boot.stateDir, boot.mailboxDir);
  leaveDeletedDir(tree.dir);
  const { durability, uids } = settings;
  checkStateDir(tree.dir, uids);
  const trays = openTrays(tree.mailbox, { durability, uids });
  const identity = thisProcess();
  const id = workerId();
  const workerFile = join(tree.workers, `${id}.json`);

  return await new Promise((resolve) => {
    let bell: Doorbell | undefined;
    let isStopped = false;
    const worker = new Worker({
      id,
      slots,
      tree,
      trays,
      settings,
      ownerPrefix: ownerPrefix(identity),
      newOwner: runnerSequence(identity),
      workerFile,
      isSupervised: () => isSpawned && process.connected === true,
      send: (message: ToSupervisor) => {
        if (process.connected === true) process.send?.(message, undefined, undefined, () => {});
      },
      onStopped: () => {
        isStopped = true;
        bell?.stop();
        clearInterval(sweep);
        removeDocument(workerFile);
        if (process.connected === true) process.disconnect();
        resolve(0);
        // Fires only where something still holds the process: a timer or socket that a handler left behind.
        setTimeout(() => process.exit(), LEAVE_MS).unref();
      },
    });
    const document: WorkerDocument = {
      id,
      pid: process.pid,
      place: identity.place,
      start_ticks: identity.startTicks,
      tree: treeIdOf(tree.dir),
      host: os.hostname(),
      slots,
      supervisor_pid: isSpawned ? process.ppid : null,
      settings: digestSettings(settings, tree.mailbox),
      started_at: new Date().toISOString(),
    };
    /**
     * Says who we are, also when our file was taken away. A full disk does not keep us from working; adoption by another
     * supervisor comes to know of us later.
     */
    const introduce = (): void => {
      // A tree that was moved away must not come into being again where it was.
      if (fs.existsSync(workerFile) || treeIdOf(tree.dir) === null) return;
      if (isOtherTree(document.tree, tree.dir)) {
        say(`${tree.dir} is another directory now; its worker ends`);
        worker.stop(false);
        return;
      }
      try {
        replaceDocument(workerFile, document, { missingMax: 2 });
      } catch (error) {
        say(`cannot write ${workerFile} yet: ${messageOf(error)}`);
      }
    };
    const sayHello = (): void => {
      // The supervisor may have died while we started: then we stand alone, and it is no error.
      process.send?.({ type: "hello", id } satisfies ToSupervisor, undefined, undefined, () => {});
    };
    // V8 ends the process where the thread can have no heap: that must be over before anything is claimed.
    const mayStarve = addressSpaceMax() !== undefined;
    const onBeating = (): void => {
      if (isSpawned) sayHello();
      worker.wake();
    };
    worker.startHeartbeat(mayStarve ? onBeating : undefined);
    introduce();

    let idleSinceMs = performance.now();
    /** From here on no supervisor offers files: find them. */
    const standAlone = async (): Promise<void> => {
      // Not before it is wanted: a worker under a supervisor is told.
      const { Doorbell } = await import("../host/doorbell.ts");
      if (isStopped) return;
      bell = new Doorbell(trays.processing, {
        onRing: (name) => {
          if (name === undefined || isReadyFile(name)) worker.lookAround();
        },
        onFallback: (error) => say(`no directory watch (${messageOf(error)}); polling instead`),
      });
      bell.start();
      worker.lookAround();
    };
    const sweep = setInterval(() => {
      introduce();
      bell?.rearm();
      worker.lookAround();
      worker.wake();
      const isGone = treeIdOf(tree.dir) === null;
      // What has run and cannot be settled is held for as long as the tree may come back.
      if (!worker.isIdle && (worker.runningCount > 0 || !isGone)) idleSinceMs = performance.now();
      const isOrphan =
        isSpawned && process.connected !== true && performance.now() - idleSinceMs > ORPHAN_IDLE_MS;
      if (!isOrphan || isSupervised(tree)) return;
      worker.stop(true);
      if (isGone) process.exit();
    }, settings.sweep_ms);

    if (isSpawned) {
      process.on("message", (message) => worker.receive(message as ToWorker));
      process.once("disconnect", () => void standAlone());
      if (!mayStarve) sayHello();
    } else {
      void standAlone();
    }
    // After saying hello: the supervisor looks for work at the same time.
    setImmediate(() => worker.warmUp());
    let signals = 0;
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
      process.on(signal, () => {
        signals += 1;
        if (process.connected !== true) {
          // The first asks politely by hand: what runs may end. A supervisor's SIGTERM, or a second one, means now.
          worker.stop(signals === 1 && !isSpawned && signal === "SIGINT");
        } else if (signals === 1) {
          worker.leave(signal);
        } else {
          // As if it had been killed: what it runs has used up its run. A task may be the one who sends them.
          process.removeAllListeners(signal);
          process.kill(process.pid, signal);
        }
      });
    }
    // The reader of what we print may be gone; that is no reason to end.
    process.stderr.on("error", () => {});
    process.stdout.on("error", () => {});
    // A handler that leaves a promise behind must not take the other tasks of this process with it.
    process.on("unhandledRejection", (error) => {
      say(`a handler left a rejected promise behind: ${messageOf(error)}`);
    });
  });
}

/** Where the directory in which the pool was started is deleted, no thread can be made. */
function leaveDeletedDir(to: string): void {
  try {
    process.cwd();
  } catch {
    process.chdir(to);
  }
}

function isSupervised(tree: StateTree): boolean {
  const document = supervisorOf(readDocument(tree.supervisor));
  if (document === undefined || document.status === "stopped") return false;
  return judgeIn(tree.dir, document) === "alive";
}
