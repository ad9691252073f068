/** Starts the worker processes of this supervisor, replaces those that die, and ends them; `Workers` knows who is there. */
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeDocument } from "../../host/documents.ts";
import { isToSupervisor, type ToSupervisor, type WorkerBoot } from "../../worker/protocol.ts";
import { digestSettings } from "../../worker/settings-digest.ts";
import { ChildWorker, type Progress } from "./child-worker.ts";
import { ExternalWorkers } from "./external-workers.ts";
import { MemoryDeaths } from "./memory-deaths.ts";
import { type Death, RestartPolicy } from "./restart-policy.ts";
import { shareAmong } from "./slot-shares.ts";
import { ThreadBudget } from "./thread-budget.ts";
import type { WorkerInfo } from "./worker-info.ts";
import { Workers } from "./workers.ts";

/**
 * How far a worker came that has ended. `unstarted`: the system did not start it; `unborn`: it was not ready for work yet; `done`: it
 * was started for one task, and has ended well.
 */
type DeathStage = "unstarted" | "unborn" | "done" | "ended";

/** A worker of ours ended. */
export interface WorkerDeath {
  stage: DeathStage;
  /** Undefined: it could not be started. */
  worker: ChildWorker | undefined;
  how: string;
  /** The system gave it no memory: what is short, for people. */
  shortOf: string | undefined;
  restartInMs: number;
  isBreakerOpen: boolean;
}

/** What happens to workers. */
export interface WorkerFacts {
  "worker:started": [worker: WorkerInfo];
  "worker:progress": [message: Progress];
  /** It was sent a signal: it claims none of these files, which it was offered, and ends with what it runs. */
  "worker:leaving": [worker: WorkerInfo, signal: string, files: string[]];
  "worker:died": [death: WorkerDeath];
  /** One that is not our child has settings that differ from ours, or was left elsewhere by a supervisor there. */
  "worker:unlike": [worker: WorkerInfo];
  /** Something changed that may let more tasks run. */
  "worker:changed": [];
}

/** So many processes at most have one task each. */
const ALONE_MAX = 8;
/** A process that is not ready by then will not be (ms). */
const START_MS_MAX = 60_000;
/** From the death of a worker until the next one is started, while others are there (ms). */
const HAND_OVER_MS = 50;

export class Pool {
  private readonly workersDir: string;
  /** What all our workers are started with. */
  private readonly boot: Omit<WorkerBoot, "slots" | "threads" | "isSpawned">;
  readonly facts = new EventEmitter<WorkerFacts>();
  readonly workers: Workers;
  private readonly restarts = new RestartPolicy();
  private readonly budget: ThreadBudget;
  private readonly memory = new MemoryDeaths();
  private restartTimer: NodeJS.Timeout | undefined;
  /** Runs while those who are left take over what a dead worker ran. */
  private handOverTimer: NodeJS.Timeout | undefined;
  /** Runs while they are to give back what they run. */
  private killTimer: NodeJS.Timeout | undefined;
  private maxSlots: number;
  private readonly processCount: number;
  private isClosing = false;
  /** More runs than may: nothing starts before enough has ended. */
  isOversubscribed = false;

  constructor(settings: Settings, tree: StateTree) {
    this.workersDir = tree.workers;
    this.boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
    const others = new ExternalWorkers({
      workersDir: tree.workers,
      stateDir: tree.dir,
      silenceMaxMs: settings.lease_ttl_ms,
      digest: digestSettings(settings, tree.mailbox),
      onUnlike: (worker) => this.facts.emit("worker:unlike", worker),
    });
    this.workers = new Workers(others);
    this.budget = new ThreadBudget(settings.durability);
    this.maxSlots = settings.workers;
    this.processCount = settings.processes;
  }

  /** Slots over all our worker processes; takes effect at once. */
  setMaxSlots(slots: number): void {
    this.maxSlots = slots;
    this.ensure();
  }

  /** Starts what is missing. Adopted workers count as ours; workers started by hand come on top. */
  ensure(): void {
    if (!this.boot.settings.mailbox_enabled) return;
    if (this.isClosing || this.restartTimer !== undefined || this.maxSlots === 0) return;
    if (this.handOverTimer !== undefined && this.workers.children.length > 0) return;
    const wanted = Math.min(this.processCount, this.maxSlots);
    let have = this.workers.members.length;
    while (have < wanted && this.start()) have++;
  }

  /** Has idle workers end that dead supervisors have left, see `Workers`. @param running what each runs, by owner prefix */
  retireIdle(running: ReadonlyMap<string, number>): void {
    this.workers.retireIdle(running, this.processCount);
  }

  /** Slots by worker id, for `control.json`: workers obey it before each claim. @param claims see `shareAmong` */
  shares(claims: ReadonlyMap<string, number>): Record<string, number> {
    const { slots, isOversubscribed } = shareAmong(this.workers, this.maxSlots, claims);
    this.isOversubscribed = isOversubscribed;
    return slots;
  }

  /** A worker of ours that has fewer threads than would help, and for want of what memory; undefined when there is none. */
  findShort(): { threads: number; wanted: number; shortOf: string | undefined } | undefined {
    const { wanted } = this.budget;
    for (const { threads, shortOf } of this.workers.children)
      if (threads < wanted) return { threads, wanted, shortOf };
    return undefined;
  }

  /** Whether tasks run side by side in one process, and may die of each other. */
  get runsSeveral(): boolean {
    return this.maxSlots > this.processCount;
  }

  /** Starts a process for this one file, which ends with it. False while there are enough such processes, or none can be started. */
  startAlone(file: string): boolean {
    if (this.isClosing || this.restartTimer !== undefined) return false;
    return this.workers.alone.length < Math.min(this.maxSlots, ALONE_MAX) && this.start(file);
  }

  /** Looks at `workers/`: who else is there, who is gone. */
  survey(): void {
    const own = new Set(this.workers.children.map(({ id }) => id));
    if (this.workers.others.survey(own)) this.facts.emit("worker:changed");
  }

  /** Tells all to end: after what they run (`drain`), or as `hurry` does. Resolves when our children are gone. */
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

  /** Another supervisor has taken over: leave the workers to it. */
  abandon(): void {
    this.isClosing = true;
    this.clearTimers();
    for (const { child } of this.workers.children) {
      if (child.connected) child.disconnect();
      child.unref();
    }
  }

  /** Has all give back what they run, also those that are ending by a drain. Those that do not go in time are killed. */
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

  /** False when that failed: it counts as a death, and is tried again like one. */
  private start(onlyFile?: string): boolean {
    const processes = Math.max(1, Math.min(this.processCount, this.maxSlots));
    const slots = onlyFile === undefined ? Math.max(1, Math.floor(this.maxSlots / processes)) : 1;
    const failed = (error: unknown): void =>
      this.died(undefined, `cannot start: ${messageOf(error)}`);
    let child: ChildProcess;
    let threads: number;
    try {
      threads = this.budget.next(slots);
      const isShort = threads < this.budget.wanted;
      child = ChildWorker.start({ ...this.boot, slots, threads, isSpawned: true }, isShort);
    } catch (error) {
      // Some errors of the system are thrown, others told later (EAGAIN, EMFILE): all come the latter way.
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
      // The system cannot say who that is: then its leases could not be told from others.
      child.once("exit", () => failed(error));
      child.kill("SIGKILL");
      return false;
    }
    this.workers.add(worker);
    child.on("message", (message) => {
      if (isToSupervisor(message)) this.receive(worker, message);
    });
    child.on("error", () => {});
    // Node hangs when it gets only some of its threads.
    const startLimit = setTimeout(() => {
      if (worker.phase === "starting") child.kill("SIGKILL");
    }, START_MS_MAX).unref();
    child.once("exit", (code, signal) => {
      clearTimeout(startLimit);
      const shortOf = this.memory.explain(signal);
      if (shortOf !== undefined) this.workers.noteStarved(worker);
      const death = worker.deathBy(signal, shortOf !== undefined);
      this.died(worker, signal ?? `exit code ${code}`, death, shortOf);
    });
    this.facts.emit("worker:changed");
    return true;
  }

  private receive(worker: ChildWorker, message: ToSupervisor): void {
    if (message.type === "hello") {
      if (worker.phase === "starting") worker.phase = "ready";
      // Its slots are known before it is offered something.
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

  /** It is replaced at once, and its end is no death then. */
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
    // Perhaps of the threads that it was to have: then the next one, which gets fewer, need not wait.
    const isShrunk = stage === "unborn" && this.budget.shrink(worker?.threads ?? 0, shortOf);
    const restartInMs = isReplaced || isShrunk ? 0 : this.restartAfter(death);
    if (!this.isClosing) this.letOthersTakeOver();
    const { isBreakerOpen } = this.restarts;
    this.facts.emit("worker:died", { stage, worker, how, shortOf, restartInMs, isBreakerOpen });
    this.ensure();
  }

  /** @returns after how many ms a successor is started; 0 also when there is none to come */
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

  /** Starting a process blocks for some milliseconds, and takes the other processor for more: that comes later. */
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
