/**
 * The worker processes of this supervisor: starts them, replaces the dead, offers them accepted tasks, and counts what
 * others (adopted from a dead supervisor, or started by hand) can take.
 */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { WorkerDocument } from "../core/documents.ts";
import { messageOf } from "../core/errors.ts";
import { UNSETTLED_MAX } from "../core/limits.ts";
import { workerOf } from "../core/saved-documents.ts";
import type { Settings } from "../core/settings.ts";
import { shareSlots } from "../core/shares.ts";
import { readDocument, removeDocument } from "../host/documents.ts";
import { identityOf, ownerPrefix, thisPlace } from "../host/identity.ts";
import { listDir } from "../host/list-dir.ts";
import { pathOfEntry } from "../host/package.ts";
import { judgeIn } from "../host/tree-id.ts";
import { LeaseObserver } from "../mailbox/recover.ts";
import type { WorkerBoot } from "../worker/main.ts";
import { isToSupervisor, type ToSupervisor, type ToWorker } from "../worker/protocol.ts";
import { digestSettings } from "../worker/settings-digest.ts";
import { type Death, RestartPolicy } from "./restarts.ts";
import { RECOVER_MS } from "./task-recoverer.ts";

export interface PoolHooks {
  onProgress(message: Extract<ToSupervisor, { type: "progress" }>): void;
  onStarted(worker: PoolWorker): void;
  /** `files` were offered and not dealt with; `ownerPrefix` begins the leases it held. With pid 0 it could not be started. */
  onDeath(death: {
    id: string;
    pid: number;
    ownerPrefix: string;
    files: string[];
    how: string;
    restartInMs: number;
    isBreakerOpen: boolean;
  }): void;
  /** A worker that is not our child has settings that differ from ours, or was left elsewhere by a supervisor there. */
  onUnlike(worker: PoolWorker): void;
  /** Something changed that may let more tasks run. */
  onChange(): void;
}

export interface PoolWorker {
  id: string;
  pid: number;
  slots: number;
  /** The most it was given lately: it runs no more, whatever else it holds. */
  slotsPeak: number;
  isSpawned: boolean;
  /** Its settings are not ours. */
  isOutdated?: boolean;
  /** It is on another host or in another container: its pid says nothing here, and nobody knows whether it lives. */
  isElsewhere?: boolean;
}

export interface Spawned extends PoolWorker {
  child: ChildProcess;
  ownerPrefix: string;
  isReady: boolean;
  startedMs: number;
  hasSettled: boolean;
  /** Offered files it is not through with. */
  offered: Set<string>;
  /** Attempts it found by itself. */
  extra: number;
  /** Attempts that have run and wait for the disk. */
  unsettled: number;
}

/** What all our workers are started with. */
type PoolBoot = Omit<WorkerBoot, "slots" | "isSpawned">;

/** With durability `power` so many results wait for the disk together, and share its commits. */
const SYNC_THREADS = "64";
/** Signals that a process does not get by a fault of its own. */
const FROM_OUTSIDE: ReadonlySet<NodeJS.Signals> = new Set([
  "SIGKILL",
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
]);
/** From the death of a worker until the next one is started, while others are there (ms). */
const HAND_OVER_MS = 50;
/** A process that lived this long was healthy, even if it settled nothing (ms). */
const HEALTHY_MS = 10_000;

export class Pool {
  private readonly workersDir: string;
  private readonly boot: PoolBoot;
  private readonly hooks: PoolHooks;
  /** Of the settings that our workers have. */
  private readonly digest: string;
  private readonly spawned = new Map<number, Spawned>();
  /** Workers that are not our children, and not known to be dead. */
  private others = new Map<string, PoolWorker>();
  /** Of workers elsewhere: one that shows no sign of life for the lease time is gone. */
  private readonly silence = new LeaseObserver(RECOVER_MS);
  private readonly restarts = new RestartPolicy();
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

  constructor(settings: Settings, workersDir: string, boot: PoolBoot, hooks: PoolHooks) {
    this.workersDir = workersDir;
    this.boot = boot;
    this.digest = digestSettings(boot.settings, boot.mailboxDir);
    this.hooks = hooks;
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
    let have = this.spawned.size + this.adopted().length;
    while (have < wanted && this.start()) have++;
  }

  /**
   * Ends idle workers that dead supervisors have left with other settings, or beyond the number we are to have: when
   * supervisors die faster than workers come to work, each of them starts some anew. What such a worker claims meanwhile it
   * gives back.
   * @param running what each worker runs now, by owner prefix
   */
  retireIdle(running: ReadonlyMap<string, number>): void {
    let surplus = this.spawned.size + this.adopted().length - this.processCount;
    for (const worker of this.inherited()) {
      // The pid of one elsewhere may be anybody's here.
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
    const members = [...this.adopted(), ...this.spawned.values()];
    const leaving = this.inherited().filter((worker) => !isAdopted(worker));
    const countOf = (worker: PoolWorker): number =>
      Math.min(claims.get(ownerPrefixOf(worker.id)) ?? 0, worker.slotsPeak);
    const counts = members.map(countOf);
    // What they run ends in peace, and counts where it is known to run; they get nothing more.
    const max = this.maxSlots - sum(leaving.map(countOf));
    this.isOversubscribed = sum(counts) > max;
    const slots = shareSlots(max, counts);
    members.forEach((worker, index) => {
      // What it has claimed up to now it has claimed by what it was given before.
      worker.slotsPeak = this.isOversubscribed
        ? worker.slotsPeak
        : Math.max(worker.slots, slots[index] ?? 0);
      worker.slots = slots[index] ?? 0;
    });
    return Object.fromEntries([...members, ...leaving].map((worker) => [worker.id, worker.slots]));
  }

  list(): PoolWorker[] {
    return [...this.others.values(), ...this.spawned.values()];
  }

  /** What the leases of our own children begin with. */
  ownPrefixes(): Set<string> {
    return new Set([...this.spawned.values()].map((worker) => worker.ownerPrefix));
  }

  get size(): number {
    return this.spawned.size + this.others.size;
  }

  get hasOthers(): boolean {
    return this.others.size > 0;
  }

  /** Free slots of workers that we can offer to, plus `prefetch` to keep them from waiting for us. */
  freeOffers(prefetch: number): number {
    let free = 0;
    for (const worker of this.spawned.values()) free += roomOf(worker, prefetch);
    return free;
  }

  get otherSlots(): number {
    let slots = 0;
    for (const worker of this.others.values()) slots += worker.slots;
    return slots;
  }

  /** Offers accepted files, best first, each to the worker with most room. @returns files for which there was no room */
  offer(files: readonly string[], prefetch: number): string[] {
    const batches = new Map<Spawned, string[]>();
    const rooms = new Map([...this.spawned.values()].map((w) => [w, roomOf(w, prefetch)]));
    const left: string[] = [];
    for (const file of files) {
      let best: Spawned | undefined;
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
    for (const [worker, batch] of batches) send(worker, { type: "ready", files: batch });
    return left;
  }

  /** Offered files that are gone from `processing/`: a message about them was lost. */
  forget(files: ReadonlySet<string>): void {
    for (const worker of this.spawned.values())
      for (const file of worker.offered) if (files.has(file)) worker.offered.delete(file);
  }

  tellAll(message: ToWorker): void {
    for (const worker of this.spawned.values()) send(worker, message);
  }

  /** Looks at `workers/`: who else is there, who is gone. */
  survey(): void {
    const own = new Set([...this.spawned.values()].map((w) => w.id));
    const found = new Map<string, PoolWorker>();
    const names = listDir(this.workersDir);
    this.silence.beginRound(performance.now(), new Set(names));
    for (const name of names) {
      if (!name.endsWith(".json") || own.has(name.slice(0, -5))) continue;
      const path = join(this.workersDir, name);
      const doc = workerOf(readDocument(path));
      if (doc === undefined || `${doc.id}.json` !== name) continue;
      if (this.isGone(doc, name, path)) {
        removeDocument(path);
        continue;
      }
      found.set(doc.id, this.others.get(doc.id) ?? this.meet(doc));
    }
    const isChanged =
      found.size !== this.others.size || [...found.keys()].some((id) => !this.others.has(id));
    this.others = found;
    if (isChanged) this.hooks.onChange();
  }

  private isGone(doc: WorkerDocument, name: string, path: string): boolean {
    const verdict = judgeIn(this.boot.stateDir, doc);
    if (verdict !== "unknown") return verdict === "dead";
    const mtimeMs = fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const { lease_ttl_ms: limitMs } = this.boot.settings;
    return this.silence.silenceMs(name, mtimeMs, performance.now()) >= limitMs;
  }

  private meet(doc: WorkerDocument): PoolWorker {
    const isSpawned = doc.supervisor_pid !== null;
    const worker: PoolWorker = {
      id: doc.id,
      pid: doc.pid,
      slots: doc.slots,
      slotsPeak: doc.slots,
      isSpawned,
      isOutdated: doc.settings !== this.digest,
      isElsewhere: doc.place !== thisPlace(),
    };
    if (isSpawned && !isAdopted(worker)) worker.slots = 0;
    if (worker.isOutdated === true || (isSpawned && worker.isElsewhere === true))
      this.hooks.onUnlike(worker);
    return worker;
  }

  /** Slots of workers that are there by now and could begin at once. */
  get readySlots(): number {
    let slots = this.otherSlots;
    for (const worker of this.spawned.values()) if (worker.isReady) slots += worker.slots;
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
    for (const worker of this.inherited())
      if (worker.isElsewhere !== true) trySignal(worker.pid, "SIGTERM");
    this.killTimer ??= setTimeout(() => {
      for (const w of this.spawned.values()) w.child.kill("SIGKILL");
    }, limitMs).unref();
  }

  private clearTimers(): void {
    clearTimeout(this.restartTimer);
    clearTimeout(this.handOverTimer);
  }

  /** Workers of supervisors before us. */
  private inherited(): PoolWorker[] {
    return [...this.others.values()].filter((w) => w.isSpawned);
  }

  /** Those of them that serve us like our own. */
  private adopted(): PoolWorker[] {
    return this.inherited().filter(isAdopted);
  }

  /** False when that failed: it counts as a death, and is tried again like one. */
  private start(): boolean {
    const slots = Math.max(
      1,
      Math.floor(this.maxSlots / Math.max(1, Math.min(this.processCount, this.maxSlots))),
    );
    const orders: WorkerBoot = { ...this.boot, slots, isSpawned: true };
    const failed = (error: unknown): void =>
      this.died(undefined, `cannot start: ${messageOf(error)}`);
    let child: ChildProcess;
    try {
      child = this.spawn();
    } catch (error) {
      // Some errors of the system are thrown (E2BIG, ENOMEM), others told later (EAGAIN, EMFILE): all come the latter way.
      setImmediate(failed, error);
      return false;
    }
    const pid = child.pid;
    if (pid === undefined) {
      child.once("error", failed);
      return false;
    }
    // No variable of the environment could hold settings of any size.
    child.send(orders, () => {});
    const identity = identityOf(pid);
    const worker: Spawned = {
      id: `w-${pid.toString(36)}-${identity.startTicks.toString(36)}`,
      pid,
      slots,
      slotsPeak: slots,
      isSpawned: true,
      child,
      ownerPrefix: ownerPrefix(identity),
      isReady: false,
      startedMs: performance.now(),
      hasSettled: false,
      offered: new Set(),
      extra: 0,
      unsettled: 0,
    };
    this.spawned.set(pid, worker);
    child.on("message", (message) => {
      if (isToSupervisor(message)) this.receive(worker, message);
    });
    child.on("error", () => {});
    child.once("exit", (code, signal) => {
      const wasKilled = signal !== null && FROM_OUTSIDE.has(signal);
      this.died(worker, signal ?? `exit code ${code}`, wasKilled);
    });
    this.hooks.onChange();
    return true;
  }

  private spawn(): ChildProcess {
    const { settings, stateDir } = this.boot;
    return spawn(process.execPath, [...process.execArgv, pathOfEntry("worker/entry")], {
      // A session of its own: Ctrl-C in a terminal is for the supervisor, who then tells its workers.
      detached: true,
      // What handlers print must not mix with the answers on our stdout.
      stdio: ["ignore", 2, 2, "ipc"],
      env: {
        ...(settings.durability === "power" ? { UV_THREADPOOL_SIZE: SYNC_THREADS } : {}),
        ...process.env,
        MAILCHUTE_WORKER_BOOT: stateDir,
      },
    });
  }

  private receive(worker: Spawned, message: ToSupervisor): void {
    if (message.type === "hello") {
      worker.isReady = true;
      this.hooks.onStarted(worker);
      this.hooks.onChange();
      return;
    }
    for (const file of message.done) worker.offered.delete(file);
    worker.extra = message.extra;
    worker.unsettled = message.unsettled;
    if (message.settled.length > 0) {
      worker.hasSettled = true;
      this.restarts.onProgress();
    }
    this.hooks.onProgress(message);
  }

  private died(worker: Spawned | undefined, how: string, wasKilled = false): void {
    if (worker !== undefined) {
      this.spawned.delete(worker.pid);
      removeDocument(join(this.workersDir, `${worker.id}.json`));
    }
    const restartInMs = this.isClosing ? 0 : this.restarts.onDeath(deathOf(worker, wasKilled));
    if (!this.isClosing && restartInMs > 0) {
      clearTimeout(this.restartTimer);
      this.restartTimer = setTimeout(() => {
        this.restartTimer = undefined;
        this.ensure();
      }, restartInMs);
    }
    if (!this.isClosing) this.letOthersTakeOver();
    this.hooks.onDeath({
      id: worker?.id ?? "",
      pid: worker?.pid ?? 0,
      ownerPrefix: worker?.ownerPrefix ?? "",
      files: worker === undefined ? [] : [...worker.offered],
      how,
      restartInMs,
      isBreakerOpen: this.restarts.isBreakerOpen,
    });
    this.ensure();
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

function deathOf(worker: Spawned | undefined, wasKilled: boolean): Death {
  if (worker === undefined) return "fruitless";
  if (worker.hasSettled || performance.now() - worker.startedMs > HEALTHY_MS) return "healthy";
  return wasKilled && worker.isReady ? "killed" : "fruitless";
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

/** What the leases of a worker of this place begin with. */
function ownerPrefixOf(workerId: string): string {
  return `${thisPlace()}-${workerId.slice(2)}`;
}

/** Whether one that another supervisor started serves us like our own. */
function isAdopted(worker: PoolWorker): boolean {
  return worker.isOutdated !== true && worker.isElsewhere !== true;
}

/** How much a worker can be offered now. Refilled from half empty, in one message rather than in many. */
function roomOf(worker: Spawned, prefetch: number): number {
  if (!worker.isReady || worker.slots === 0) return 0;
  const held = worker.offered.size + worker.extra;
  const load = held - Math.min(worker.unsettled, UNSETTLED_MAX);
  return load > worker.slots + prefetch / 2 ? 0 : Math.max(0, worker.slots + prefetch - load);
}

function send(worker: Spawned, message: ToWorker): void {
  // Lost messages do no harm: a worker looks around by itself, and the dead are replaced.
  if (worker.child.connected) worker.child.send(message, () => {});
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone.
  }
}
