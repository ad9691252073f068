/** The worker process: makes a Worker, tells the world of it, and connects it to a supervisor or to the directory. */
import { messageOf } from "../core/errors.ts";
import { isReadyFile } from "../core/names.ts";
import { supervisorOf } from "../core/saved-documents.ts";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import { readDocument } from "../host/documents.ts";
import type { Doorbell } from "../host/doorbell.ts";
import { ownerPrefix, runnerSequence, thisProcess } from "../host/identity.ts";
import { addressSpaceMax } from "../host/memory-room.ts";
import { say } from "../host/say.ts";
import { makeThreads } from "../host/threads.ts";
import { judgeIn, treeIdOf } from "../host/tree-id.ts";
import { checkStateDir, openTrays, type Trays } from "../mailbox/trays.ts";
import type { ToSupervisor, ToWorker, WorkerBoot } from "./protocol.ts";
import type { WorkerParts } from "./runner.ts";
import { Worker } from "./worker.ts";
import { OwnDocument } from "./worker-document.ts";

/** How long a worker without a supervisor waits for work, or for a new supervisor, before it ends (ms). */
const ORPHAN_IDLE_MS = 30_000;
/** How long a worker that has stopped may take to leave by itself (ms). */
const LEAVE_MS = 50;

/**
 * Runs until it is told to stop.
 * @param parts what parts add: runners, and kinds of agents
 * @returns the exit code
 * @throws what the system says when there is no room for its threads (EAGAIN), or the trays cannot be used; nothing is claimed then
 */
export async function runWorker(boot: WorkerBoot, parts: WorkerParts): Promise<number> {
  // A process that is short of them dies of it (or is ended by libuv) here, where it holds nothing.
  makeThreads(boot.threads);
  const tree = stateTree(boot.stateDir, boot.mailboxDir);
  leaveDeletedDir(tree.dir);
  const { durability, uids } = boot.settings;
  checkStateDir(tree.dir, uids);
  const trays = openTrays(tree.mailbox, { durability, uids });
  return await new Promise((resolve) => {
    new WorkerProcess(boot, parts, tree, trays, () => resolve(0)).start();
  });
}

/** A worker in a process of its own: its timers, its supervisor, its signals. */
class WorkerProcess {
  private readonly boot: WorkerBoot;
  private readonly tree: StateTree;
  private readonly trays: Trays;
  private readonly document: OwnDocument;
  private readonly worker: Worker;
  private bell: Doorbell | undefined;
  private sweep: NodeJS.Timeout | undefined;
  private isStopped = false;
  private idleSinceMs = performance.now();

  constructor(
    boot: WorkerBoot,
    parts: WorkerParts,
    tree: StateTree,
    trays: Trays,
    onStopped: () => void,
  ) {
    const identity = thisProcess();
    const document = new OwnDocument(tree, boot);
    this.boot = boot;
    this.tree = tree;
    this.trays = trays;
    this.document = document;
    this.worker = new Worker({
      self: {
        id: document.id,
        slots: boot.slots,
        ownerPrefix: ownerPrefix(identity),
        newOwner: runnerSequence(identity),
        workerFile: document.path,
        isSupervised: () => boot.isSpawned && process.connected === true,
      },
      place: { tree, trays, settings: boot.settings },
      parts,
      send: tellSupervisor,
      onStopped: () => {
        this.leave();
        onStopped();
      },
    });
  }

  start(): void {
    const { worker } = this;
    const { isSpawned, settings } = this.boot;
    // V8 ends the process where the thread can have no heap: that must be over before anything is claimed.
    const mayStarve = addressSpaceMax() !== undefined;
    const onBeating = (): void => {
      if (isSpawned) this.sayHello();
      worker.wake();
    };
    worker.startHeartbeat(mayStarve ? onBeating : undefined);
    this.introduce();
    this.sweep = setInterval(() => this.lookAround(), settings.sweep_ms);
    if (isSpawned) {
      process.on("message", (message) => worker.receive(message as ToWorker));
      process.once("disconnect", () => void this.standAlone());
      if (!mayStarve) this.sayHello();
    } else {
      void this.standAlone();
    }
    // After saying hello: the supervisor looks for work at the same time.
    setImmediate(() => worker.warmUp());
    this.obeySignals();
    outliveReadersAndHandlers();
  }

  private sayHello(): void {
    tellSupervisor({ type: "hello", id: this.document.id });
  }

  /** Our document is there, unless our tree is not. */
  private introduce(): void {
    if (this.document.ensure()) return;
    say(`${this.tree.dir} is another directory now; its worker ends`);
    this.worker.stop(false);
  }

  /** From here on no supervisor offers files: find them. */
  private async standAlone(): Promise<void> {
    const { worker } = this;
    // Not before it is wanted: a worker under a supervisor is told.
    const { Doorbell } = await import("../host/doorbell.ts");
    if (this.isStopped) return;
    this.bell = new Doorbell(this.trays.processing, {
      onRing: (name) => {
        if (name === undefined || isReadyFile(name)) worker.lookAround();
      },
      onFallback: (error) => say(`no directory watch (${messageOf(error)}); polling instead`),
    });
    this.bell.start();
    worker.lookAround();
  }

  private lookAround(): void {
    const { worker, tree } = this;
    this.introduce();
    this.bell?.rearm();
    worker.lookAround();
    worker.wake();
    const isGone = treeIdOf(tree.dir) === null;
    // What has run and cannot be settled is held for as long as the tree may come back.
    if (!worker.isIdle && (worker.runningCount > 0 || !isGone))
      this.idleSinceMs = performance.now();
    const hasLostSupervisor = this.boot.isSpawned && process.connected !== true;
    const isOrphan = hasLostSupervisor && performance.now() - this.idleSinceMs > ORPHAN_IDLE_MS;
    if (!isOrphan || isSupervised(tree)) return;
    worker.stop(true);
    if (isGone) process.exit();
  }

  private obeySignals(): void {
    const { worker } = this;
    let signals = 0;
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
      process.on(signal, () => {
        signals += 1;
        if (process.connected !== true) {
          // The first asks politely by hand: what runs may end. A supervisor's SIGTERM, or a second one, means now.
          worker.stop(signals === 1 && !this.boot.isSpawned && signal === "SIGINT");
        } else if (signals === 1) {
          worker.leave(signal);
        } else {
          // As if it had been killed: what it runs has used up its run. A task may be the one who sends them.
          process.removeAllListeners(signal);
          process.kill(process.pid, signal);
        }
      });
    }
  }

  private leave(): void {
    this.isStopped = true;
    this.bell?.stop();
    clearInterval(this.sweep);
    this.document.remove();
    if (process.connected === true) process.disconnect();
    // Fires only where something still holds the process: a timer or socket that a handler left behind.
    setTimeout(() => process.exit(), LEAVE_MS).unref();
  }
}

/** It may have died: then we stand alone, and it is no error. */
function tellSupervisor(message: ToSupervisor): void {
  if (process.connected === true) process.send?.(message, undefined, undefined, () => {});
}

function outliveReadersAndHandlers(): void {
  // The reader of what we print may be gone; that is no reason to end.
  process.stderr.on("error", () => {});
  process.stdout.on("error", () => {});
  // A handler that leaves a promise behind must not take the other tasks of this process with it.
  process.on("unhandledRejection", (error) => {
    say(`a handler left a rejected promise behind: ${messageOf(error)}`);
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
