/** What a bridge knows of the machines of its cluster, as they say it themselves. Pure. */
import type { MachineReport } from "./messages.ts";

/** The broker gets more than the machines can begin: a slot that becomes free finds its next task there. */
const AHEAD = 1.5;

export interface KnownMachine extends MachineReport {
  /** When it last said so (monotonic ms). */
  heardMs: number;
}

export class Machines {
  private readonly known = new Map<string, KnownMachine>();
  private readonly goneMs: number;

  /** @param goneMs a machine that has said nothing for so long takes no tasks */
  constructor(goneMs: number) {
    this.goneMs = goneMs;
  }

  take(report: MachineReport, nowMs: number): void {
    this.known.set(report.machine, { ...report, heardMs: nowMs });
  }

  /** Those that were heard within `forgetMs`, by name. */
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
    const serving = [...this.known.values()].filter(
      (one) => this.isThere(one, nowMs) && (one.serves.includes(target) || one.machine === target),
    );
    return serving.reduce((sum, { serves, room }) => sum + (serves.length > 0 ? room : 0), 0);
  }
}

/** How many tasks of one target may be under way when the machines have so many slots. */
export function mayBeSent(room: number): number {
  return Math.ceil(AHEAD * room);
}
