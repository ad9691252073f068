/** Starts the worker processes of this supervisor, replaces dead ones, and ends them; `Workers` knows which there are. */
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeDocument } from "../../host/documents.ts";
import { HANG_SIGNAL } from "../../worker/main-beat.ts";
import {
  isToSupervisor,
  type ToSupervisor,
  type WorkerBoot,
  type WorkerProcess,
} from "../../worker/protocol.ts";
import { digestSettings } from "../../worker/settings-digest.ts";
import { ChildWorker, type Progress } from "./child-worker.ts";
import { ExternalWorkers } from "./external-workers.ts";
import { HangingWorkers } from "./hanging-workers.ts";
import { MemoryDeaths } from "./memory-deaths.ts";
import { type Death, RestartPolicy } from "./restart-policy.ts";
import { shareAmong } from "./slot-shares.ts";
import { ThreadBudget } from "./thread-budget.ts";
import type { WorkerInfo } from "./worker-info.ts";
import { trySignal, Workers } from "./workers.ts";

/**
 * How far a worker process had come when it ended. `unstarted`: the system did not start it; `unborn`: it was not ready for work
 * yet; `done`: it was started for one task, and ended well.
 */
type DeathStage = "unstarted" | "unborn" | "done" | "ended";

/** The end of one of our workers. */
export interface WorkerDeath {
  stage: DeathStage;
  /** Undefined when it could not be started. */
  worker: ChildWorker | undefined;
  how: string;
  /** The limit that was reached, for people, when it died for lack of memory. */
  shortOf: string | undefined;
  restartInMs: number;
  isBreakerOpen: boolean;
}

/** Facts about workers. */
export interface WorkerFacts {
  "worker:started": [worker: WorkerInfo];
  "worker:progress": [message: Progress];
  /** It got a signal: it claims none of the offered files, and ends when its running tasks end. */
  "worker:leaving": [worker: WorkerInfo, signal: string, files: string[]];
  "worker:died": [death: WorkerDeath];
  /**
   * `unlike`: a worker that is not our child has other settings than we do, or was left by a supervisor elsewhere. `hangs`: a worker
   * lives but has not moved for `stall_ms`; it is ended now, or has ended itself.
   */
  "worker:odd": [worker: WorkerInfo, why: "unlike" | "hangs"];
  /** Something changed that may let more tasks run. */
  "worker:changed": [];
}

/** The largest number of processes with one task each. */
const ALONE_MAX = 8;
/** A process that is not ready after this time never will be (ms). */
const START_MS_MAX = 60_000;
/** Pause between the death of a worker and the next start, while there are other workers (ms). */
const HAND_OVER_MS = 50;

/** Makes a worker in this process. @throws an error when it cannot be made: that counts as its death */
export type StartWorker = (orders: WorkerBoot) => WorkerProcess;

export class Pool {
  private readonly workersDir: string;
  /** The orders that all our workers have in common. */
  private readonly boot: Omit<WorkerBoot, "slots" | "threads" | "isSpawned">;
  readonly facts = new EventEmitter<WorkerFacts>();
  readonly workers: Workers;
  private readonly restarts = new RestartPolicy();
  private readonly budget: ThreadBudget;
  private readonly memory = new MemoryDeaths();
  private readonly hanging: HangingWorkers;
  private restartTimer: NodeJS.Timeout | undefined;
  /** Runs while the other workers take over a dead worker's tasks. */
  private handOverTimer: NodeJS.Timeout | undefined;
  /** Runs while workers have time to give back their tasks. */
  private killTimer: NodeJS.Timeout | undefined;
  private maxSlots: number;
  private readonly processCount: number;
  private isClosing = false;
  /** More tasks run than there are slots: nothing starts until enough have ended. */
  isOversubscribed = false;

  private readonly startLocal: StartWorker | undefined;

  /** @param startLocal makes a worker in this process; left out: each worker is a process of its own */
  constructor(settings: Settings, tree: StateTree, startLocal?: StartWorker) {
    this.startLocal = startLocal;
    this.workersDir = tree.workers;
    this.boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
    const others = new ExternalWorkers({
      workersDir: tree.workers,
      stateDir: tree.dir,
      silenceMaxMs: settings.lease_ttl_ms,
      digest: digestSettings(settings, tree.mailbox),
      onUnlike: (worker) => this.facts.emit("worker:odd", worker, "unlike"),
    });
    this.workers = new Workers(others, settings.durability);
    this.budget = new ThreadBudget(settings.durability);
    this.hanging = new HangingWorkers(tree, settings);
    this.maxSlots = settings.workers;
    this.processCount = settings.processes;
  }

  /** Sets the number of slots over all worker processes; takes effect at once. */
  setMaxSlots(slots: number): void {
    this.maxSlots = slots;
    this.ensure();
  }

  /** Starts missing workers. Adopted workers count as ours; workers started by hand are extra. */
  ensure(): void {
    if (!this.boot.settings.mailbox_enabled) return;
    if (this.isClosing || this.restartTimer !== undefined || this.maxSlots === 0) return;
    if (this.handOverTimer !== undefined && this.workers.children.length > 0) return;
    const wanted = Math.min(this.processCount, this.maxSlots);
    let have = this.workers.members.length;
    while (have < wanted && this.start()) have++;
  }

  /** Ends idle workers that dead supervisors have left, see `Workers`. @param running how many tasks each worker runs, by owner prefix */
  retireIdle(running: ReadonlyMap<string, number>): void {
    this.workers.retireIdle(running, this.processCount);
  }

  /** Slots by worker id, for `control.json`: workers read it before each claim. @param claims see `shareAmong` */
  shares(claims: ReadonlyMap<string, number>): Record<string, number> {
    const { slots, isOversubscribed } = shareAmong(this.workers, this.maxSlots, claims);
    this.isOversubscribed = isOversubscribed;
    return slots;
  }

  /** A worker of ours with fewer threads than are useful, and the memory limit that causes it; undefined when there is none. */
  findShort(): { threads: number; wanted: number; shortOf: string | undefined } | undefined {
    const { wanted } = this.budget;
    for (const { threads, shortOf } of this.workers.children)
      if (threads < wanted) return { threads, wanted, shortOf };
    return undefined;
  }

  /**
   * Whether several tasks run in one worker process, so that one may end the others. False for a worker in this process: it is
   * the only one.
   */
  get runsSeveral(): boolean {
    return this.startLocal === undefined && this.maxSlots > this.processCount;
  }

  /** Starts a process for this one file only; the process ends after it. False when there are enough such processes, or none can be started. */
  startAlone(file: string): boolean {
    if (this.isClosing || this.restartTimer !== undefined) return false;
    return this.workers.alone.length < Math.min(this.maxSlots, ALONE_MAX) && this.start(file);
  }

  /** Reads `workers/` to find which other workers exist, and ends those that hang. */
  survey(): void {
    const own = new Set(this.workers.children.map(({ id }) => id));
    if (this.workers.others.survey(own)) this.facts.emit("worker:changed");
    // A worker in this process moves as this thread does.
    if (this.startLocal === undefined) this.endHanging();
  }

  private endHanging(): void {
    const { children, others } = this.workers;
    const nowMs = performance.now();
    for (const worker of this.hanging.find([...children, ...others.list], nowMs)) {
      this.facts.emit("worker:odd", worker, "hangs");
      // SIGKILL also ends a process that was stopped.
      trySignal(worker.pid, "SIGKILL");
    }
  }

  /** Tells all workers to end: after their running tasks (`drain`), or as `hurry` does. Resolves when our children are gone. */
  async close(drain: boolean, limitMs: number): Promise<void> {
    this.isClosing = true;
    this.clearTimers();
    if (drain) this.workers.tellAll({ type: "stop", drain });
    else this.hurry(limitMs);
    const gone = this.workers.children.map(
      (w) => new Promise<void>((resolve) => w.child.once("exit", () => resolve())),
    );
    await Promise.all(gone);
    clearTimeout(this.killTimer);
  }

  /** Leaves the workers to another supervisor, which has taken over. */
  abandon(): void {
    this.isClosing = true;
    this.clearTimers();
    for (const { child } of this.workers.children) {
      if (child.connected) child.disconnect();
      child.unref();
    }
  }

  /** Tells all workers, also draining ones, to give back their running tasks. Those that do not end in time are killed. */
  hurry(limitMs: number): void {
    this.workers.stopAll();
    this.killTimer ??= setTimeout(() => {
      for (const w of this.workers.children) w.child.kill("SIGKILL");
    }, limitMs).unref();
  }

  private clearTimers(): void {
    clearTimeout(this.restartTimer);
    clearTimeout(this.handOverTimer);
  }

  /** False when the start failed: this counts as a death, and a new start follows as after a death. */
  private start(onlyFile?: string): boolean {
    const processes = Math.max(1, Math.min(this.processCount, this.maxSlots));
    const slots = onlyFile === undefined ? Math.max(1, Math.floor(this.maxSlots / processes)) : 1;
    const failed = (error: unknown): void =>
      this.died(undefined, `cannot start: ${messageOf(error)}`);
    let child: WorkerProcess;
    let threads: number;
    try {
      threads = this.budget.next(slots);
      const isShort = threads < this.budget.wanted;
      const orders = { ...this.boot, slots, threads, isSpawned: true };
      child = this.startLocal?.(orders) ?? ChildWorker.start(orders, isShort);
    } catch (error) {
      // Some system errors are thrown, others are reported later (EAGAIN, EMFILE): handle all of them in the later way.
      setImmediate(failed, error);
      return false;
    }
    const { pid } = child;
    if (pid === undefined) {
      child.once("error", failed);
      return false;
    }
    let worker: ChildWorker;
    try {
      worker = new ChildWorker(
        child,
        pid,
        { slots, threads, shortOf: this.budget.shortOf },
        onlyFile,
      );
    } catch (error) {
      // The system cannot give the identity of the child, so we could not recognize its leases.
      child.once("exit", () => failed(error));
      child.kill("SIGKILL");
      return false;
    }
    this.workers.add(worker);
    child.on("message", (message: unknown) => {
      if (isToSupervisor(message)) this.receive(worker, message);
    });
    child.on("error", () => {});
    // Node hangs when it gets only some of its threads.
    const startLimit = setTimeout(() => {
      if (worker.phase === "starting") child.kill("SIGKILL");
    }, START_MS_MAX).unref();
    child.once("exit", (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(startLimit);
      const shortOf = this.memory.explain(signal);
      if (shortOf !== undefined) this.workers.noteStarved(worker);
      if (signal === HANG_SIGNAL) this.facts.emit("worker:odd", worker, "hangs");
      const death = worker.deathBy(signal, shortOf !== undefined);
      this.died(worker, signal ?? `exit code ${code}`, death, shortOf);
    });
    this.facts.emit("worker:changed");
    return true;
  }

  private receive(worker: ChildWorker, message: ToSupervisor): void {
    if (message.type === "hello") {
      if (worker.phase === "starting") worker.phase = "ready";
      // Its slots are set before it is offered a task.
      this.facts.emit("worker:started", worker);
      if (worker.onlyFile !== undefined) worker.send({ type: "ready", files: [worker.onlyFile] });
      this.facts.emit("worker:changed");
      return;
    }
    if (message.type === "leaving") {
      this.leaves(worker, message.signal);
      return;
    }
    worker.noteProgress(message);
    if (worker.onlyFile !== undefined && worker.offered.size === 0)
      worker.send({ type: "stop", drain: true });
    if (message.settled.length > 0) this.restarts.onProgress();
    this.facts.emit("worker:progress", message);
  }

  /** A leaving worker is replaced at once, and its end does not count as a death. */
  private leaves(worker: ChildWorker, signal: string): void {
    if (!worker.isStaying) return;
    worker.phase = "leaving";
    const files = [...worker.offered];
    worker.offered.clear();
    this.restartAfter("killed");
    this.facts.emit("worker:leaving", worker, signal, files);
    this.ensure();
  }

  private died(
    worker: ChildWorker | undefined,
    how: string,
    death: Death = "fruitless",
    shortOf?: string,
  ): void {
    if (worker !== undefined) {
      this.workers.remove(worker);
      removeDocument(join(this.workersDir, `${worker.id}.json`));
    }
    const stage = stageOf(worker, how);
    const isReplaced = worker?.isStaying === false && stage !== "unborn";
    // The worker may have died because of its number of threads. The next one gets fewer and need not wait.
    const isShrunk = stage === "unborn" && this.budget.shrink(worker?.threads ?? 0, shortOf);
    const restartInMs = isReplaced || isShrunk ? 0 : this.restartAfter(death);
    if (!this.isClosing) this.letOthersTakeOver();
    const { isBreakerOpen } = this.restarts;
    this.facts.emit("worker:died", { stage, worker, how, shortOf, restartInMs, isBreakerOpen });
    this.ensure();
  }

  /** @returns the pause before a successor is started (ms); 0 also when no successor is needed */
  private restartAfter(death: Death): number {
    if (this.isClosing) return 0;
    const restartInMs = this.restarts.onDeath(death);
    if (restartInMs > 0) {
      clearTimeout(this.restartTimer);
      this.restartTimer = setTimeout(() => {
        this.restartTimer = undefined;
        this.ensure();
      }, restartInMs);
    }
    return restartInMs;
  }

  /** Delays the next start: it blocks for some milliseconds and uses the other processor even longer. */
  private letOthersTakeOver(): void {
    clearTimeout(this.handOverTimer);
    this.handOverTimer = setTimeout(() => {
      this.handOverTimer = undefined;
      this.ensure();
    }, HAND_OVER_MS);
  }
}

function stageOf(worker: ChildWorker | undefined, how: string): DeathStage {
  if (worker === undefined) return "unstarted";
  if (worker.phase === "starting") return "unborn";
  return worker.onlyFile !== undefined && how === "exit code 0" ? "done" : "ended";
}
