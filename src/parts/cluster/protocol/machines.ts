/** What a bridge knows of the machines of its cluster, from their own reports. Pure. */
import type { MachineReport } from "./messages.ts";

/** The broker gets this many tasks for each slot, so that a free slot finds its next task there. */
const AHEAD = 1.5;

export interface KnownMachine extends MachineReport {
  /** When its last report came (monotonic ms). */
  heardMs: number;
  /** Other trees that were heard under the same name, with the time (monotonic ms). */
  others: ReadonlyMap<string, number>;
}

export class Machines {
  private readonly known = new Map<string, KnownMachine>();

  /** @param goneMs a machine that was silent for this long counts as gone */
  constructor(private readonly goneMs: number) {}

  take(report: MachineReport, nowMs: number): void {
    const before = this.known.get(report.machine);
    const others = new Map(before?.others);
    if (before?.tree !== undefined && before.tree !== report.tree)
      others.set(before.tree, before.heardMs);
    others.delete(report.tree ?? "");
    this.known.set(report.machine, { ...report, heardMs: nowMs, others });
  }

  /** The other trees whose machines have this name now. */
  twins({ others }: KnownMachine, nowMs: number): string[] {
    return [...others].flatMap(([tree, ms]) => (nowMs - ms <= this.goneMs ? [tree] : []));
  }

  /** Why the machines that serve a target take no tasks: a reason for each. */
  whyNone(target: string, nowMs: number): string[] {
    return this.serving(target, nowMs).flatMap(({ machine, room, is_draining: isOff, why }) => {
      if (room > 0) return [];
      return [`${machine}: ${isOff ? "it is drained" : (why ?? "it has no slots")}`];
    });
  }

  private serving(target: string, nowMs: number): KnownMachine[] {
    return [...this.known.values()].filter(
      (one) =>
        this.isThere(one, nowMs) &&
        one.serves.length > 0 &&
        (one.serves.includes(target) || one.machine === target),
    );
  }

  /** The machines that were heard within `forgetMs`, sorted by name. */
  list(nowMs: number, forgetMs: number): KnownMachine[] {
    for (const [name, { heardMs }] of this.known)
      if (nowMs - heardMs > forgetMs) this.known.delete(name);
    return [...this.known.values()].sort((a, b) => (a.machine < b.machine ? -1 : 1));
  }

  isThere({ heardMs }: KnownMachine, nowMs: number): boolean {
    return nowMs - heardMs <= this.goneMs;
  }

  /** How many slots the machines have for tasks with this target. */
  roomFor(target: string, nowMs: number): number {
    return this.serving(target, nowMs).reduce((sum, { room }) => sum + room, 0);
  }
}

/** How many tasks of a target may be on their way if its machines have this many slots. */
export function mayBeSent(room: number): number {
  return Math.ceil(AHEAD * room);
}
