/** Finds the processes of one run among all processes, and sums what they have used so far. Pure. */
import type { UsageRow } from "../../host/processes/proc-table.ts";

/** One listing of all processes. */
export interface Listing {
  rows: readonly UsageRow[];
  byParent: ReadonlyMap<number, readonly UsageRow[]>;
}

export function makeListing(rows: readonly UsageRow[]): Listing {
  const byParent = new Map<number, UsageRow[]>();
  for (const row of rows) {
    const siblings = byParent.get(row.parent);
    if (siblings === undefined) byParent.set(row.parent, [row]);
    else siblings.push(row);
  }
  return { rows, byParent };
}

/** A process at the last look, with what it had used by then. */
interface Seen {
  row: UsageRow;
  writtenBytes: number;
}

export class RunTree {
  private members = new Map<number, Seen>();
  /** Processor time and written bytes of processes that are gone. */
  private goneMs = 0;
  private goneBytes = 0;
  private cpuMsMax = 0;
  private writtenMax = 0;

  constructor(private readonly rootPid: number) {}

  /**
   * Finds the processes of the run: the group and the session of the program, those that carry its lease, those that were found
   * before, and all descendants of these.
   * @param leased the pids that carry the lease
   * @returns the pids of the run
   */
  update(
    listing: Listing,
    leased: ReadonlySet<number>,
    writtenOf: (pid: number) => number,
  ): number[] {
    const found = new Map<number, UsageRow>();
    for (const row of listing.rows) if (this.isMember(row, leased)) found.set(row.pid, row);
    // The loop appends to the list that it reads.
    const queue = [...found.keys()];
    for (const pid of queue)
      for (const child of listing.byParent.get(pid) ?? []) {
        if (found.has(child.pid)) continue;
        found.set(child.pid, child);
        queue.push(child.pid);
      }
    const before = this.members;
    this.members = new Map(
      [...found].map(([pid, row]) => [pid, { row, writtenBytes: writtenOf(pid) }]),
    );
    for (const [pid, seen] of before)
      if (this.members.get(pid)?.row.startTicks !== seen.row.startTicks) this.noteGone(seen);
    this.sum();
    return queue;
  }

  /** The processes at the last look. */
  get rows(): UsageRow[] {
    return [...this.members.values()].map(({ row }) => row);
  }

  /** Processor time of all processes of the run, also of those that are gone. */
  get cpuMs(): number {
    return this.cpuMsMax;
  }

  get writtenBytes(): number {
    return this.writtenMax;
  }

  private isMember(row: UsageRow, leased: ReadonlySet<number>): boolean {
    return (
      row.pid === this.rootPid ||
      row.group === this.rootPid ||
      row.session === this.rootPid ||
      leased.has(row.pid) ||
      this.members.get(row.pid)?.row.startTicks === row.startTicks
    );
  }

  private noteGone({ row, writtenBytes }: Seen): void {
    this.goneMs += row.ownMs;
    // The parent that waits for a child takes over the bytes that the child has written.
    if (!this.members.has(row.parent)) this.goneBytes += writtenBytes;
  }

  private sum(): void {
    let own = this.goneMs;
    let withChildren = 0;
    let written = this.goneBytes;
    for (const { row, writtenBytes } of this.members.values()) {
      own += row.ownMs;
      withChildren += row.ownMs + row.childrenMs;
      written += writtenBytes;
    }
    // A parent counts the children that it waited for, also those that no look has seen. Only the other sum has the time of
    // orphans.
    this.cpuMsMax = Math.max(this.cpuMsMax, own, withChildren);
    this.writtenMax = Math.max(this.writtenMax, written);
  }
}
