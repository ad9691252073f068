/** The existing worker processes, our children and others: how many tasks each can take, and which leases belong to it. */
import { PREFETCH_MAX } from "../../core/limits.ts";
import type { ToWorker } from "../../worker/protocol.ts";
import type { ChildWorker } from "./child-worker.ts";
import type { ExternalWorkers } from "./external-workers.ts";
import { ownerPrefixOf, type WorkerInfo } from "./worker-info.ts";

/** The work in advance (seconds, at the recent rate). */
const AHEAD_S = { process: 0.06, power: 0.3 };
const RATE_WINDOW_MS = 200;

/** How much work each worker gets in advance, so that it never waits for the supervisor: it depends on how fast tasks end. */
class WorkAhead {
  private settledInWindow = 0;
  private windowStartMs = 0;
  private ratePerS = 0;

  constructor(private readonly durability: keyof typeof AHEAD_S) {}

  noteSettled(): void {
    this.settledInWindow++;
  }

  /** @returns tasks a worker @param nowMs monotonic */
  tasksPerWorker(nowMs: number, workers: { readySlots: number; size: number }): number {
    const elapsedMs = nowMs - this.windowStartMs;
    // One task a slot may have run for hours. Only more of them show that tasks are short, and that workers need some in advance.
    const shortCount = Math.max(0, this.settledInWindow - workers.readySlots);
    if (elapsedMs >= RATE_WINDOW_MS) {
      this.ratePerS = (shortCount * 1000) / elapsedMs;
      this.settledInWindow = 0;
      this.windowStartMs = nowMs;
    } else if (elapsedMs > 10) {
      this.ratePerS = Math.max(this.ratePerS, (shortCount * 1000) / Math.max(elapsedMs, 50));
    }
    const ahead = (this.ratePerS * AHEAD_S[this.durability]) / Math.max(1, workers.size);
    return Math.min(PREFETCH_MAX, Math.floor(ahead));
  }
}

export class Workers {
  private readonly byPid = new Map<number, ChildWorker>();
  /** The lease prefixes of all our children, living and dead. */
  private readonly allPrefixes = new Set<string>();
  /** The lease prefixes of our children that died for lack of memory. */
  private readonly starvedPrefixes = new Set<string>();

  private readonly ahead: WorkAhead;

  constructor(
    readonly others: ExternalWorkers,
    durability: keyof typeof AHEAD_S,
  ) {
    this.ahead = new WorkAhead(durability);
  }

  add(child: ChildWorker): void {
    this.byPid.set(child.pid, child);
    this.allPrefixes.add(child.ownerPrefix);
  }

  /** Removes a dead child. */
  remove(child: ChildWorker): void {
    this.byPid.delete(child.pid);
  }

  noteStarved(child: ChildWorker): void {
    this.starvedPrefixes.add(child.ownerPrefix);
  }

  get children(): ChildWorker[] {
    return [...this.byPid.values()];
  }

  /** Our children, without those that are about to end. */
  get staying(): ChildWorker[] {
    return this.children.filter((child) => child.isStaying);
  }

  /** Workers that were started for one task. */
  get alone(): ChildWorker[] {
    return this.children.filter((child) => child.onlyFile !== undefined);
  }

  /** Workers that share the slots. */
  get members(): WorkerInfo[] {
    return [...this.others.adopted, ...this.staying];
  }

  /** Workers that end after their running tasks, and get no new ones. */
  get leaving(): WorkerInfo[] {
    return [
      ...this.others.inherited.filter(({ tie }) => tie !== "adopted"),
      ...this.children.filter((child) => child.phase === "leaving" && child.onlyFile === undefined),
    ];
  }

  get size(): number {
    return this.byPid.size + this.others.count;
  }

  get hasOthers(): boolean {
    return this.others.count > 0;
  }

  get otherSlots(): number {
    return this.others.slots;
  }

  /** Slots of workers that are ready and could begin at once. */
  get readySlots(): number {
    let slots = this.otherSlots;
    for (const child of this.staying) if (child.phase === "ready") slots += child.slots;
    return slots;
  }

  noteSettled(): void {
    this.ahead.noteSettled();
  }

  /** @returns tasks in advance, for each worker @param nowMs monotonic */
  tasksAhead(nowMs: number): number {
    return this.ahead.tasksPerWorker(nowMs, this);
  }

  /** Free slots of workers that we can offer tasks to, plus `prefetch` tasks in advance. */
  freeOffers(prefetch: number): number {
    let free = 0;
    for (const child of this.byPid.values()) free += child.room(prefetch);
    return free;
  }

  /** Offers accepted files, best first, each to the worker with most room. @returns files for which there was no room */
  offer(files: readonly string[], prefetch: number): string[] {
    const batches = new Map<ChildWorker, string[]>();
    const rooms = new Map(this.children.map((child) => [child, child.room(prefetch)]));
    const left: string[] = [];
    for (const file of files) {
      let best: ChildWorker | undefined;
      let bestRoom = 0;
      for (const [child, room] of rooms) {
        if (room > bestRoom) {
          best = child;
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
    for (const [child, batch] of batches) child.send({ type: "ready", files: batch });
    return left;
  }

  /** Forgets offered files that are gone from `processing/`, because a message about them was lost. */
  forget(files: ReadonlySet<string>): void {
    for (const child of this.byPid.values())
      for (const file of child.offered) if (files.has(file)) child.offered.delete(file);
  }

  tellAll(message: ToWorker): void {
    for (const child of this.byPid.values()) child.send(message);
  }

  /** The lease prefixes of our own children. */
  ownPrefixes(): Set<string> {
    return new Set(this.children.map((child) => child.ownerPrefix));
  }

  /** True if leases with this prefix belong to a child of ours, living or dead. */
  isOrWasOwn(ownerPrefix: string): boolean {
    return this.allPrefixes.has(ownerPrefix);
  }

  /** True if leases with this prefix belong to a worker that we know, whether it is our child or not. */
  isKnown(ownerPrefix: string): boolean {
    return (
      this.isOrWasOwn(ownerPrefix) ||
      this.others.list.some(({ id }) => ownerPrefixOf(id) === ownerPrefix)
    );
  }

  /** True if leases with this prefix belong to a child of ours whose end has not been reported yet. */
  isChild(ownerPrefix: string): boolean {
    for (const child of this.byPid.values()) if (child.ownerPrefix === ownerPrefix) return true;
    return false;
  }

  /** True if leases with this prefix belong to a child of ours that died for lack of memory. */
  lackedMemory(ownerPrefix: string): boolean {
    return this.starvedPrefixes.has(ownerPrefix);
  }

  /**
   * Ends idle workers that dead supervisors have left, when their settings are outdated or there are too many workers. There can be
   * too many when supervisors die before their workers start to work, because each supervisor starts new ones. If such a worker
   * claims a task before it ends, it gives the task back.
   * @param running how many tasks each worker runs now, by owner prefix
   * @param countMax the wanted number of worker processes
   */
  retireIdle(running: ReadonlyMap<string, number>, countMax: number): void {
    let surplus = this.members.length - countMax;
    for (const worker of this.others.inherited) {
      // The pid of a worker elsewhere may belong to another process here.
      if (worker.tie === "elsewhere") continue;
      const isAdopted = worker.tie === "adopted";
      if ((isAdopted && surplus <= 0) || running.has(ownerPrefixOf(worker.id))) continue;
      trySignal(worker.pid, "SIGTERM");
      if (isAdopted) surplus -= 1;
    }
  }

  /** Tells all workers, also draining ones, to give back their running tasks. */
  stopAll(): void {
    this.tellAll({ type: "stop", drain: false });
    for (const { tie, pid } of this.others.inherited)
      if (tie !== "elsewhere") trySignal(pid, "SIGTERM");
  }
}

export function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process is gone.
  }
}
