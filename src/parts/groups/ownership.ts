/**
 * Keeps two tasks from running at once when one writes files that the other reads or writes. The one that comes first in the queue
 * runs first, so no task waits for ever behind a stream of readers.
 */
import { resolve } from "node:path";
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import { meetAt, readOwnsKey } from "../../core/owned-paths.ts";
import { compareTasks, laneOf, type WaitingTask } from "../../core/waiting-task.ts";
import { repositoryOf } from "../../git/find-repository.ts";

/** In one tick only the first lists of files in the queue are judged, at most this many. The others wait for a later tick. */
const LOOKAHEAD_MAX = 200;
/** At most this many waiting lists are reported. */
const TOLD_MAX = 50;
/** Most lists whose repositories and meetings are remembered before all are forgotten. */
const KNOWN_MAX = 2000;

interface Claim {
  /** Counted from 0. It makes keys of `meetings` short. */
  number: number;
  repository: string;
  read: string[];
  write: string[];
}

/** A task that has the files, or comes first in the queue. */
interface Holder {
  id: string;
  owns: string;
  isInWork: boolean;
}

export class Ownership {
  /** Tasks in `processing/`, by folded id. */
  private readonly inWork = new Map<string, Holder>();
  private readonly claims = new Map<string, Claim>();
  /** The paths where two claims meet, by the numbers of the two claims in this order. Undefined where they do not meet. */
  private readonly meetings = new Map<number, [string, string] | undefined>();
  /** Lists whose first task may start now. */
  private open = new Set<string>();
  /** Why the others may not, by list. */
  private closed = new Map<string, string>();

  constructor(private readonly stateDir: string) {}

  enter(key: string, id: string, owns: string): void {
    this.inWork.set(key, { id, owns, isInWork: true });
    // Other tasks with the same list may run at the same time only when the list has nothing to write.
    if (this.claimOf(owns).write.length > 0) this.open.delete(owns);
  }

  leave(key: string): void {
    this.inWork.delete(key);
  }

  mayStart(owns: string): boolean {
    return this.open.has(owns);
  }

  /**
   * Decides again which lists may start. @param heads the first waiting task of each list
   * @param isOpen true if nothing else holds back a task of this lane
   * @returns true if `report` has changed
   */
  decide(heads: readonly WaitingTask[], isOpen: (lane: string) => boolean): boolean {
    if (this.claims.size > KNOWN_MAX) {
      this.claims.clear();
      this.meetings.clear();
    }
    const before = this.closed;
    this.open = new Set();
    this.closed = new Map();
    const holders = [...this.inWork.values()];
    for (const task of [...heads].sort(compareTasks)) {
      const { owns = "", id } = task;
      if (this.open.size + this.closed.size >= LOOKAHEAD_MAX) break;
      const { owns: _, ...others } = task;
      if (!isOpen(laneOf(others))) continue;
      const why = this.explain(owns, holders);
      if (why === undefined) this.open.add(owns);
      else if (!this.open.has(owns)) this.closed.set(owns, why);
      holders.push({ id, owns, isInWork: false });
    }
    return (
      before.size !== this.closed.size ||
      [...this.closed].some(([owns, why]) => before.get(owns) !== why)
    );
  }

  report(): ClosedGate[] {
    return [...this.closed.keys()].slice(0, TOLD_MAX).map((owns) => this.gateOf(owns));
  }

  /** The gate of a list that may not start. */
  gateOf(owns: string): ClosedGate {
    const why = this.closed.get(owns) ?? "other tasks that own files come first";
    return closedGate("owns", why, "wait", { owns });
  }

  private explain(owns: string, holders: readonly Holder[]): string | undefined {
    for (const holder of holders) {
      const meeting = this.meeting(owns, holder.owns);
      if (meeting === undefined) continue;
      const [own, theirs] = meeting;
      const does = this.claimOf(holder.owns).write.includes(theirs) ? "writes" : "reads";
      const wanted = this.claimOf(owns).write.includes(own) ? "write" : "read";
      const who = holder.isInWork ? holder.id : `${holder.id} comes first and`;
      return `files in use: ${who} ${does} ${theirs} (wanted: ${wanted} ${own})`;
    }
    return undefined;
  }

  private meeting(a: string, b: string): [string, string] | undefined {
    const [one, other] = [this.claimOf(a), this.claimOf(b)];
    const both = one.number * KNOWN_MAX * 2 + other.number;
    if (this.meetings.has(both)) return this.meetings.get(both);
    const found = one.repository === other.repository ? meetAt(one, other) : undefined;
    this.meetings.set(both, found);
    return found;
  }

  private claimOf(owns: string): Claim {
    let claim = this.claims.get(owns);
    if (claim === undefined) {
      const { cwd, read, write } = readOwnsKey(owns);
      const repository = repositoryOf(resolve(this.stateDir, "..", cwd));
      claim = { number: this.claims.size, repository, read, write };
      this.claims.set(owns, claim);
    }
    return claim;
  }
}
