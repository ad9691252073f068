/**
 * Tells a person's wish from an old copy. A person who reads the roadmap and saves it whole later brings back the statuses of
 * the moment of reading, and a finished node would run again. A person who sets one node open means it. Pure.
 */
import { foldId } from "../../../core/names.ts";
import type { NodeStatus } from "../../../core/roadmap.ts";

/** A status that the supervisor set. */
interface Change {
  id: string;
  from: NodeStatus;
  to: NodeStatus;
  atMs: number;
}

/** A single reverted status counts as an old copy for so long (ms); several at once do until they are forgotten. */
const SINGLE_STALE_MS = 5000;
const REMEMBERED_MS = 30 * 60_000;
const CHANGES_MAX = 20_000;

export class StatusHistory {
  private changes: Change[] = [];

  note(id: string, from: NodeStatus, to: NodeStatus, nowMs: number): void {
    if (from === to) return;
    this.changes.push({ id: foldId(id), from, to, atMs: nowMs });
    if (this.changes.length > CHANGES_MAX) this.changes = this.changes.slice(-CHANGES_MAX / 2);
  }

  /** When the supervisor last set this node's status. */
  lastAtMs(id: string): number | undefined {
    return this.changes.findLast((change) => change.id === foldId(id))?.atMs;
  }

  /**
   * Which of these differences come from an old copy: the saved text shows every node that changed since some moment as
   * it was at that moment.
   * @param differences statuses in the saved text that are not ours
   * @param statusIn what the saved text says of a node
   * @returns ids (folded) whose status in the saved text is to be overruled
   */
  staleIds(
    differences: ReadonlyMap<string, NodeStatus>,
    statusIn: (foldedId: string) => NodeStatus | undefined,
    nowMs: number,
  ): Set<string> {
    this.changes = this.changes.filter((change) => nowMs - change.atMs < REMEMBERED_MS);
    const wanted = new Set([...differences.keys()].map(foldId));
    const then = new Map<string, NodeStatus>();
    const unlike = new Set<string>();
    let stale = new Set<string>();
    let sinceMs = nowMs;
    for (let i = this.changes.length - 1; i >= 0 && stale.size < wanted.size; i--) {
      const change = this.changes[i] as Change;
      then.set(change.id, change.from);
      const found = statusIn(change.id);
      // A node that is gone from the text says nothing.
      if (found === undefined || found === change.from) unlike.delete(change.id);
      else unlike.add(change.id);
      // Up to here every node that changed looks as it did before: so old the copy may be.
      if (unlike.size > 0) continue;
      stale = new Set([...wanted].filter((id) => then.has(id)));
      sinceMs = change.atMs;
    }
    return stale.size === 1 && nowMs - sinceMs > SINGLE_STALE_MS ? new Set() : stale;
  }
}
