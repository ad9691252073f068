/** The worker process: makes a Worker, writes its document, and connects it to a supervisor or to the directory. */
import fs from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { isReadyFile } from "../core/names.ts";
import { supervisorOf } from "../core/saved-documents.ts";
import { isFunction } from "../core/settings.ts";
import { type StateTree, stateTree } from "../core/state-tree.ts";
import type { DirWatcher } from "../host/dir-watcher.ts";
import { readDocument } from "../host/documents.ts";
import { addressSpaceMax } from "../host/memory-room.ts";
import { say } from "../host/say.ts";
import { makeThreads } from "../host/threads.ts";
import { judgeIn, treeIdOf } from "../host/tree-id.ts";
import { Alerts } from "../journal/alerts.ts";
import { checkStateDir, openTrays, type Trays } from "../mailbox/files/trays.ts";
import { checkFormat } from "../mailbox/files/tree-format.ts";
import type { ToSupervisor, ToWorker, WorkerBoot } from "./protocol.ts";
import type { WorkerParts } from "./runner.ts";
import { SupervisorWatch } from "./supervisor-watch.ts";
import { Worker } from "./worker.ts";
import { OwnDocument } from "./worker-document.ts";

/** How long a worker that has lost its supervisor waits for work, or for a new supervisor, before it ends (ms). */
const ORPHAN_IDLE_MS = 30_000;
/** The time between two looks for drops of ended runs (ms). */
const DROPS_MS = 5000;
/** How long a worker process may take to end by itself after it has stopped (ms). */
const LEAVE_MS = 50;

/**
 * Runs until it is told to stop.
 * @param parts the runners and kinds of agents that parts add
 * @returns the exit code
 * @throws the system's error when there is no room for its threads (EAGAIN), or when the trays cannot be used; nothing is claimed
 *   then
 */
export async function runWorker(boot: WorkerBoot, parts: WorkerParts): Promise<number> {
  // Make the threads first: without enough of them the process fails here (or libuv ends it), where it holds no task.
  makeThreads(boot.threads);
  const tree = stateTree(boot.stateDir, boot.mailboxDir);
  leaveDeletedDir(tree.dir);
  const { durability, uids } = boot.settings;
  checkStateDir(tree.dir, uids);
  checkFormat(tree.dir);
  const trays = openTrays(tree.mailbox, { durability, uids });
  return await new Promise((resolve) => {
    new WorkerProcess(boot, parts, tree, trays, () => resolve(0)).start();
  });
}

/** A worker in its own process: its timers, its supervisor, its signals. */
class WorkerProcess {
  private readonly document: OwnDocument;
  private readonly worker: Worker;
  private readonly watch: SupervisorWatch;
  private watcher: DirWatcher | undefined;
  private sweep: NodeJS.Timeout | undefined;
  private isStopped = false;
  private isTakingDrops = false;
  private dropsAtMs = 0;
  private idleSinceMs = performance.now();

  constructor(
    private readonly boot: WorkerBoot,
    private readonly parts: WorkerParts,
    private readonly tree: StateTree,
    private readonly trays: Trays,
    onStopped: () => void,
  ) {
    const document = new OwnDocument(tree, boot);
    this.document = document;
    this.watch = new SupervisorWatch(tree, boot.settings, (pid) => this.noteHang(pid));
    this.worker = new Worker({
      self: document.selfWith(() => boot.isSpawned && process.connected === true),
      place: { tree, trays, settings: boot.settings },
      parts,
      send: tellSupervisor,
      mayClaim: () => !this.watch.isHanging,
      onStopped: () => {
        this.leave();
        onStopped();
      },
    });
  }

  start(): void {
    const { worker } = this;
    const { isSpawned, settings } = this.boot;
    // V8 ends the process when the thread gets no heap: wait for that before anything is claimed.
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
    this.watch.start();
    // Do this after the hello: the supervisor looks for work at the same time.
    setImmediate(() => worker.warmUp());
    if (this.hasPrograms) void this.takeLeftDrops();
    this.obeySignals();
    outliveReadersAndHandlers();
  }

  /** True if runs here are programs, which may leave drops: then their folders are looked at. */
  private get hasPrograms(): boolean {
    return this.boot.settings.agents.some((agent) => !isFunction(agent));
  }

  /** Called repeatedly: a worker may die after this one has started, and its programs even later. */
  private async takeLeftDrops(): Promise<void> {
    if (this.isTakingDrops || !fs.existsSync(join(this.tree.dir, "drops"))) return;
    this.isTakingDrops = true;
    this.dropsAtMs = performance.now() + DROPS_MS;
    try {
      const { takeLeftDrops } = await import("./drop.ts");
      const { boot, parts, tree, trays } = this;
      const { settings } = boot;
      await takeLeftDrops({ tree, trays, settings, requests: parts.requests ?? [] });
    } catch {
      // For example, the disk is full: the next look tries again.
    } finally {
      this.isTakingDrops = false;
    }
  }

  private sayHello(): void {
    tellSupervisor({ type: "hello", id: this.document.id });
  }

  /** @param pid of a supervisor that hangs; undefined when none does any more */
  private noteHang(pid: number | undefined): void {
    const { boot, document, trays, tree, worker } = this;
    if (pid === undefined) {
      say("the supervisor moves again, or has ended: this worker takes new tasks");
      worker.lookAround();
      worker.wake();
      return;
    }
    const what = `the supervisor (pid ${pid}) is alive but has not moved for ${boot.settings.stall_ms} ms`;
    const then = `worker ${document.id} finishes what it runs and takes nothing new`;
    new Alerts(tree.alerts, trays.clock, say).alert("trouble", `${what}: ${then}`);
  }

  /** Makes sure that our document is there, unless another directory has replaced our tree. */
  private introduce(): void {
    if (this.document.ensure()) return;
    say(`${this.tree.dir} is another directory now; its worker ends`);
    this.worker.stop(false);
  }

  /** Watches the directory itself, because no supervisor offers files from now on. */
  private async standAlone(): Promise<void> {
    const { worker } = this;
    // Loaded only now: a worker with a supervisor does not need it.
    const { DirWatcher } = await import("../host/dir-watcher.ts");
    if (this.isStopped) return;
    this.watcher = new DirWatcher(this.trays.processing, {
      onChange: (name) => {
        if (name === undefined || isReadyFile(name)) worker.lookAround();
      },
      onFallback: (error) => say(`no directory watch (${messageOf(error)}); polling instead`),
    });
    this.watcher.start();
    worker.lookAround();
  }

  private lookAround(): void {
    const { worker, tree } = this;
    if (this.hasPrograms && performance.now() >= this.dropsAtMs) void this.takeLeftDrops();
    this.introduce();
    this.watcher?.rearm();
    worker.lookAround();
    worker.wake();
    const isGone = treeIdOf(tree.dir) === null;
    // Attempts that have run and cannot be settled are kept while the tree may come back.
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
          // The first Ctrl-C at a worker started by hand lets running attempts end. A supervisor's SIGTERM, or a second signal,
          // stops at once.
          worker.stop(signals === 1 && !this.boot.isSpawned && signal === "SIGINT");
        } else if (signals === 1) {
          worker.leave(signal);
        } else {
          // End as if killed: the running attempts are used up. One of the tasks may have sent the signals.
          process.removeAllListeners(signal);
          process.kill(process.pid, signal);
        }
      });
    }
  }

  private leave(): void {
    this.isStopped = true;
    this.watch.stop();
    this.watcher?.stop();
    clearInterval(this.sweep);
    this.document.remove();
    if (process.connected === true) process.disconnect();
    // This only runs when a timer or socket of a handler still keeps the process alive.
    setTimeout(() => process.exit(), LEAVE_MS).unref();
  }
}

/** The supervisor may have died: this worker then continues alone, and that is no error. */
function tellSupervisor(message: ToSupervisor): void {
  if (process.connected === true) process.send?.(message, undefined, undefined, () => {});
}

function outliveReadersAndHandlers(): void {
  // The reader of our output may be gone; that is no reason to end.
  process.stderr.on("error", () => {});
  process.stdout.on("error", () => {});
  // A handler that leaves a rejected promise must not end the other tasks of this process.
  process.on("unhandledRejection", (error) => {
    say(`a handler left a rejected promise behind: ${messageOf(error)}`);
  });
}

/** No thread can be made in a deleted directory, and the directory in which the pool was started may be deleted. */
function leaveDeletedDir(to: string): void {
  try {
    process.cwd();
  } catch {
    process.chdir(to);
  }
}

function isSupervised(tree: StateTree): boolean {
  const document = readDocument(tree.supervisor, supervisorOf);
  if (document === undefined || document.status === "stopped") return false;
  return judgeIn(tree.dir, document) === "alive";
}
