/** The worker processes that there are, our children and others: what they can take, and which leases are theirs. */
import type { ToWorker } from "../../worker/protocol.ts";
import type { ChildWorker } from "./child-worker.ts";
import type { ExternalWorkers } from "./external-workers.ts";
import { ownerPrefixOf, type WorkerInfo } from "./worker-info.ts";

export class Workers {
  readonly others: ExternalWorkers;
  private readonly byPid = new Map<number, ChildWorker>();
  /** What the leases of all children begin with that there ever were. */
  private readonly allPrefixes = new Set<string>();
  /** The same of those that died because the system gave them no memory. */
  private readonly starvedPrefixes = new Set<string>();

  constructor(others: ExternalWorkers) {
    this.others = others;
  }

  add(child: ChildWorker): void {
    this.byPid.set(child.pid, child);
    this.allPrefixes.add(child.ownerPrefix);
  }

  /** It is dead. */
  remove(child: ChildWorker): void {
    this.byPid.delete(child.pid);
  }

  noteStarved(child: ChildWorker): void {
    this.starvedPrefixes.add(child.ownerPrefix);
  }

  get children(): ChildWorker[] {
    return [...this.byPid.values()];
  }

  /** Our children, without those that end with what they run. */
  get staying(): ChildWorker[] {
    return this.children.filter((child) => child.isStaying);
  }

  /** Those that are there for one task. */
  get alone(): ChildWorker[] {
    return this.children.filter((child) => child.onlyFile !== undefined);
  }

  /** Those that share the slots. */
  get members(): WorkerInfo[] {
    return [...this.others.adopted, ...this.staying];
  }

  /** Those that end with what they run, and get nothing more. */
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

  /** Slots of workers that are there by now and could begin at once. */
  get readySlots(): number {
    let slots = this.otherSlots;
    for (const child of this.staying) if (child.phase === "ready") slots += child.slots;
    return slots;
  }

  /** Free slots of workers that we can offer to, plus `prefetch` to keep them from waiting for us. */
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

  /** Offered files that are gone from `processing/`: a message about them was lost. */
  forget(files: ReadonlySet<string>): void {
    for (const child of this.byPid.values())
      for (const file of child.offered) if (files.has(file)) child.offered.delete(file);
  }

  tellAll(message: ToWorker): void {
    for (const child of this.byPid.values()) child.send(message);
  }

  /** What the leases of our own children begin with. */
  ownPrefixes(): Set<string> {
    return new Set(this.children.map((child) => child.ownerPrefix));
  }

  /** Whether leases that begin so are those of a child of ours, living or dead. */
  isOrWasOwn(ownerPrefix: string): boolean {
    return this.allPrefixes.has(ownerPrefix);
  }

  /** Whether leases that begin so are those of a child of ours whose end has not been told yet. */
  isChild(ownerPrefix: string): boolean {
    for (const child of this.byPid.values()) if (child.ownerPrefix === ownerPrefix) return true;
    return false;
  }

  /** Whether leases that begin so are those of a child of ours that the system gave no memory. */
  lackedMemory(ownerPrefix: string): boolean {
    return this.starvedPrefixes.has(ownerPrefix);
  }

  /**
   * Ends idle workers that dead supervisors have left with other settings, or beyond the number we are to have: when
   * supervisors die faster than workers come to work, each of them starts some anew. What such a worker claims until then it
   * gives back.
   * @param running what each worker runs now, by owner prefix
   * @param countMax worker processes that we are to have
   */
  retireIdle(running: ReadonlyMap<string, number>, countMax: number): void {
    let surplus = this.members.length - countMax;
    for (const worker of this.others.inherited) {
      // The pid of a worker elsewhere may be that of another process here.
      if (worker.tie === "elsewhere") continue;
      const isAdopted = worker.tie === "adopted";
      if ((isAdopted && surplus <= 0) || running.has(ownerPrefixOf(worker.id))) continue;
      trySignal(worker.pid);
      if (isAdopted) surplus -= 1;
    }
  }

  /** Has all give back what they run, also those that are ending by a drain. */
  stopAll(): void {
    this.tellAll({ type: "stop", drain: false });
    for (const { tie, pid } of this.others.inherited) if (tie !== "elsewhere") trySignal(pid);
  }
}

function trySignal(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // Gone.
  }
}
