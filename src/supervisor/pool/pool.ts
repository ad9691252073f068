/**
 * The worker processes of this supervisor: starts them, replaces the dead, offers them accepted tasks, and counts what
 * others (adopted from a dead supervisor, or started by hand) can take.
 */
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { removeDocument } from "../../host/documents.ts";
import type { WorkerBoot } from "../../worker/main.ts";
import { isToSupervisor, type ToSupervisor, type ToWorker } from "../../worker/protocol.ts";
import { digestSettings } from "../../worker/settings-digest.ts";
import { ChildWorker, type Progress } from "./child-worker.ts";
import { ExternalWorkers } from "./external-workers.ts";
import { MemoryDeaths } from "./memory-deaths.ts";
import { type Death, RestartPolicy } from "./restart-policy.ts";
import { shareSlots } from "./slot-shares.ts";
import { ThreadBudget } from "./thread-budget.ts";
import { isAdopted, ownerPrefixOf, type WorkerInfo } from "./worker-info.ts";

/** A worker of ours ended. With pid 0 it could not be started. */
export interface WorkerDeath {
  id: string;
  pid: number;
  /** Begins the leases that it held. */
  ownerPrefix: string;
  /** It was offered these, and has not dealt with them. */
  files: string[];
  how: string;
  /** It was started for one task, and has ended well. */
  isDone: boolean;
  /** It ended before it was ready for work. */
  isUnborn: boolean;
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

/** What all our workers are started with. */
type PoolBoot = Omit<WorkerBoot, "slots" | "threads" | "isSpawned">;

/** So many processes at most have one task each. */
const ALONE_MAX = 8;
/** A process that is not ready by then will not be (ms). */
const START_MS_MAX = 60_000;
/** From the death of a worker until the next one is started, while others are there (ms). */
const HAND_OVER_MS = 50;

export class Pool {
  private readonly workersDir: string;
  private readonly boot: PoolBoot;
  readonly facts = new EventEmitter<WorkerFacts>();
  private readonly spawned = new Map<number, ChildWorker>();
  /** What the leases of all children begin with that there ever were. */
  private readonly allPrefixes = new Set<string>();
  /** The same of those that died because the system gave them no memory. */
  private readonly starvedPrefixes = new Set<string>();
  private readonly others: ExternalWorkers;
  private readonly restarts = new RestartPolicy();
  private readonly budget: ThreadBudget;
  private readonly memory = new MemoryDeaths();
  private restartTimer: NodeJS.Timeout | undefined;
  /** Runs while those who are left take over what a dead worker ran. */
  private handOverTimer: NodeJS.Timeout | undefined;
  /** Runs while they are to give back what they run. */
  private killTimer: NodeJS.Timeout | undefined;
  private maxSlots: number;
  private processCount: number;
  private isClosing = false;
  /** More runs than may: nothing starts before enough has ended. */
  isOversubscribed = false;

  constructor(settings: Settings, tree: StateTree) {
    this.workersDir = tree.workers;
    this.boot = { stateDir: tree.dir, settings, mailboxDir: tree.mailbox };
    this.others = new ExternalWorkers({
      workersDir: tree.workers,
      stateDir: tree.dir,
      silenceMaxMs: settings.lease_ttl_ms,
      digest: digestSettings(settings, tree.mailbox),
      onUnlike: (worker) => this.facts.emit("worker:unlike", worker),
    });
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
    if (this.handOverTimer !== undefined && this.spawned.size > 0) return;
    const wanted = Math.min(this.processCount, this.maxSlots);
    let have = this.staying.length + this.others.adopted.length;
    while (have < wanted && this.start()) have++;
  }

  /**
   * Ends idle workers that dead supervisors have left with other settings, or beyond the number we are to have: when
   * supervisors die faster than workers come to work, each of them starts some anew. What such a worker claims until then it
   * gives back.
   * @param running what each worker runs now, by owner prefix
   */
  retireIdle(running: ReadonlyMap<string, number>): void {
    let surplus = this.staying.length + this.others.adopted.length - this.processCount;
    for (const worker of this.others.inherited) {
      // The pid of a worker elsewhere may be that of another process here.
      if (worker.isElsewhere === true) continue;
      const isWanted = worker.isOutdated !== true && surplus <= 0;
      if (isWanted || running.has(ownerPrefixOf(worker.id))) continue;
      trySignal(worker.pid, "SIGTERM");
      if (worker.isOutdated !== true) surplus -= 1;
    }
  }

  /**
   * Slots by worker id, for `control.json`: workers obey it before each claim.
   * @param claims what each worker holds now, by owner prefix: what it runs, and what has run and waits for the disk
   */
  shares(claims: ReadonlyMap<string, number>): Record<string, number> {
    const members: WorkerInfo[] = [...this.others.adopted, ...this.staying];
    const { alone } = this;
    const leaving = [
      ...this.others.inherited.filter((worker) => !isAdopted(worker)),
      ...[...this.spawned.values()].filter((w) => w.isLeaving && w.onlyFile === undefined),
    ];
    const countOf = (worker: WorkerInfo): number =>
      Math.min(claims.get(ownerPrefixOf(worker.id)) ?? 0, worker.slotsPeak);
    const counts = members.map(countOf);
    // What they run ends in peace, and counts where it is known to run; they get nothing more.
    const others = this.maxSlots - sum(leaving.map(countOf));
    const max = Math.max(0, others - alone.length);
    this.isOversubscribed = sum(counts) > max;
    const slots = shareSlots(max, counts);
    members.forEach((worker, index) => {
      // What it has claimed up to now it has claimed by what it was given before.
      worker.slotsPeak = this.isOversubscribed
        ? worker.slotsPeak
        : Math.max(worker.slots, slots[index] ?? 0);
      worker.slots = slots[index] ?? 0;
    });
    let free = others - sum(counts) - sum(alone.map(countOf));
    for (const worker of alone) if (countOf(worker) === 0) worker.slots = free-- > 0 ? 1 : 0;
    const all = [...members, ...leaving, ...alone];
    return Object.fromEntries(all.map((worker) => [worker.id, worker.slots]));
  }

  /** A worker of ours that has fewer threads than would help, and for want of what memory; undefined when there is none. */
  findShort(): { threads: number; wanted: number; shortOf: string | undefined } | undefined {
    const { wanted } = this.budget;
    for (const { threads, shortOf } of this.spawned.values())
      if (threads < wanted) return { threads, wanted, shortOf };
    return undefined;
  }

  list(): WorkerInfo[] {
    return [...this.others.list, ...this.spawned.values()];
  }

  /** Our children, without those that end with what they run. */
  private get staying(): ChildWorker[] {
    return [...this.spawned.values()].filter((worker) => !worker.isLeaving);
  }

  private get alone(): ChildWorker[] {
    return [...this.spawned.values()].filter((worker) => worker.onlyFile !== undefined);
  }

  /** Whether tasks run side by side in one process, and may die of each other. */
  get runsSeveral(): boolean {
    return this.maxSlots > this.processCount;
  }

  /** Starts a process for this one file, which ends with it. False while there are enough such processes, or none can be started. */
  startAlone(file: string): boolean {
    if (this.isClosing || this.restartTimer !== undefined) return false;
    return this.alone.length < Math.min(this.maxSlots, ALONE_MAX) && this.start(file);
  }

  /** Whether leases that begin so are those of a child of ours, living or dead. */
  isOrWasOwn(ownerPrefix: string): boolean {
    return this.allPrefixes.has(ownerPrefix);
  }

  /** Whether leases that begin so are those of a child of ours whose end has not been told yet. */
  isChild(ownerPrefix: string): boolean {
    for (const worker of this.spawned.values()) if (worker.ownerPrefix === ownerPrefix) return true;
    return false;
  }

  /** Whether leases that begin so are those of a child of ours that the system gave no memory. */
  lackedMemory(ownerPrefix: string): boolean {
    return this.starvedPrefixes.has(ownerPrefix);
  }

  /** What the leases of our own children begin with. */
  ownPrefixes(): Set<string> {
    return new Set([...this.spawned.values()].map((worker) => worker.ownerPrefix));
  }

  get size(): number {
    return this.spawned.size + this.others.count;
  }

  get hasOthers(): boolean {
    return this.others.count > 0;
  }

  /** Free slots of workers that we can offer to, plus `prefetch` to keep them from waiting for us. */
  freeOffers(prefetch: number): number {
    let free = 0;
    for (const worker of this.spawned.values()) free += worker.room(prefetch);
    return free;
  }

  get otherSlots(): number {
    return this.others.slots;
  }

  /** Offers accepted files, best first, each to the worker with most room. @returns files for which there was no room */
  offer(files: readonly string[], prefetch: number): string[] {
    const batches = new Map<ChildWorker, string[]>();
    const rooms = new Map([...this.spawned.values()].map((w) => [w, w.room(prefetch)]));
    const left: string[] = [];
    for (const file of files) {
      let best: ChildWorker | undefined;
      let bestRoom = 0;
      for (const w of this.spawned.values()) {
        const room = rooms.get(w) ?? 0;
        if (room > bestRoom) {
          best = w;
          bestRoom = room;
        }
      }
      if (best === undefined) {
        left.push(file);
        continue;
      }
      best.offered.add(file);
      rooms.set(best, bestRoom - 1);
      const batch = batches.get(best);
      if (batch === undefined) batches.set(best, [file]);
      else batch.push(file);
    }
    for (const [worker, batch] of batches) worker.send({ type: "ready", files: batch });
    return left;
  }

  /** Offered files that are gone from `processing/`: a message about them was lost. */
  forget(files: ReadonlySet<string>): void {
    for (const worker of this.spawned.values())
      for (const file of worker.offered) if (files.has(file)) worker.offered.delete(file);
  }

  tellAll(message: ToWorker): void {
    for (const worker of this.spawned.values()) worker.send(message);
  }

  /** Looks at `workers/`: who else is there, who is gone. */
  survey(): void {
    const own = new Set([...this.spawned.values()].map((worker) => worker.id));
    if (this.others.survey(own)) this.facts.emit("worker:changed");
  }

  /** Slots of workers that are there by now and could begin at once. */
  get readySlots(): number {
    let slots = this.otherSlots;
    for (const worker of this.staying) if (worker.isReady) slots += worker.slots;
    return slots;
  }

  /** Tells all to end: after what they run (`drain`), or as `hurry` does. Resolves when our children are gone. */
  async close(drain: boolean, limitMs: number): Promise<void> {
    this.isClosing = true;
    this.clearTimers();
    if (drain) this.tellAll({ type: "stop", drain });
    else this.hurry(limitMs);
    const gone = [...this.spawned.values()].map(
      (w) => new Promise<void>((resolve) => w.child.once("exit", () => resolve())),
    );
    await Promise.all(gone);
    clearTimeout(this.killTimer);
  }

  /** Another supervisor has taken over: leave the workers to it. */
  abandon(): void {
    this.isClosing = true;
    this.clearTimers();
    for (const { child } of this.spawned.values()) {
      if (child.connected) child.disconnect();
      child.unref();
    }
  }

  /** Has all give back what they run, also those that are ending by a drain. Those that do not go in time are killed. */
  hurry(limitMs: number): void {
    this.tellAll({ type: "stop", drain: false });
    for (const worker of this.others.inherited)
      if (worker.isElsewhere !== true) trySignal(worker.pid, "SIGTERM");
    this.killTimer ??= setTimeout(() => {
      for (const w of this.spawned.values()) w.child.kill("SIGKILL");
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
    this.spawned.set(pid, worker);
    this.allPrefixes.add(worker.ownerPrefix);
    child.on("message", (message) => {
      if (isToSupervisor(message)) this.receive(worker, message);
    });
    child.on("error", () => {});
    // Node hangs when it gets only some of its threads.
    const startLimit = setTimeout(() => {
      if (!worker.isReady) child.kill("SIGKILL");
    }, START_MS_MAX).unref();
    child.once("exit", (code, signal) => {
      clearTimeout(startLimit);
      const shortOf = this.memory.explain(signal);
      if (shortOf !== undefined) this.starvedPrefixes.add(worker.ownerPrefix);
      const death = worker.deathBy(signal, shortOf !== undefined);
      this.died(worker, signal ?? `exit code ${code}`, death, shortOf);
    });
    this.facts.emit("worker:changed");
    return true;
  }

  private receive(worker: ChildWorker, message: ToSupervisor): void {
    if (message.type === "hello") {
      worker.isReady = true;
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
    if (worker.isLeaving) return;
    worker.isLeaving = true;
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
      this.spawned.delete(worker.pid);
      removeDocument(join(this.workersDir, `${worker.id}.json`));
    }
    const isReplaced = worker?.isLeaving === true && worker.isReady;
    const isUnborn = worker?.isReady === false;
    // Perhaps of the threads that it was to have: then the next one, which gets fewer, need not wait.
    const isShrunk = isUnborn && this.budget.shrink(worker.threads, shortOf);
    const restartInMs = isReplaced || isShrunk ? 0 : this.restartAfter(death);
    if (!this.isClosing) this.letOthersTakeOver();
    this.facts.emit("worker:died", {
      id: worker?.id ?? "",
      pid: worker?.pid ?? 0,
      ownerPrefix: worker?.ownerPrefix ?? "",
      files: worker === undefined ? [] : [...worker.offered],
      how,
      isDone: worker?.onlyFile !== undefined && how === "exit code 0",
      isUnborn,
      shortOf,
      restartInMs,
      isBreakerOpen: this.restarts.isBreakerOpen,
    });
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone.
  }
}
