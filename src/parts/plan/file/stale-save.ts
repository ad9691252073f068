/**
 * Decides whether a changed status is a person's wish or comes from an old copy. A person who opens the roadmap and saves it
 * later restores the statuses of that time, and a finished node would run again. A person who sets one node open wants that. Pure.
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

/**
 * For this long after a node's last change, a single reverted status counts as an old copy (ms): a person had no time to see the
 * change and to undo it on purpose. Several reverted statuses count as an old copy until the changes are forgotten.
 */
const SINGLE_STALE_MS = 5000;
export const REMEMBERED_MS = 30 * 60_000;
const CHANGES_MAX = 20_000;

export class StatusHistory {
  private changes: Change[] = [];
  private readonly lastMs = new Map<string, number>();
  private readonly seenMs = new Map<string, number>();

  /** @param seenMs when people could see the change. If it stands for a whole run, this is the end of the run */
  note(id: string, from: NodeStatus, to: NodeStatus, nowMs: number, seenMs = nowMs): void {
    if (from === to) return;
    this.changes.push({ id: foldId(id), from, to, atMs: nowMs });
    this.lastMs.set(foldId(id), nowMs);
    this.seenMs.set(foldId(id), seenMs);
    if (this.changes.length > CHANGES_MAX) this.changes = this.changes.slice(-CHANGES_MAX / 2);
  }

  /** When the supervisor last set this node's status. */
  lastAtMs(id: string): number | undefined {
    return this.lastMs.get(foldId(id));
  }

  /**
   * Returns which of these differences come from an old copy. The saved text is a copy from an earlier time if every node that
   * changed after that time still has its earlier status in the text.
   * @param differences statuses in the saved text that differ from the current plan
   * @param statusIn the status of a node in the saved text
   * @param savedMs when the text was saved. If that is not known, an earlier time
   * @returns ids (folded) whose status in the saved text must be corrected
   */
  staleIds(
    differences: ReadonlyMap<string, NodeStatus>,
    statusIn: (foldedId: string) => NodeStatus | undefined,
    savedMs: number,
  ): Set<string> {
    this.changes = this.changes.filter((change) => savedMs - change.atMs < REMEMBERED_MS);
    const wanted = new Set([...differences.keys()].map(foldId));
    const changed = new Set<string>();
    const unlike = new Set<string>();
    /** The wanted nodes among the changes walked so far, the last change first. The first `oldCount` of them are old. */
    const seen: string[] = [];
    let oldCount = 0;
    for (let i = this.changes.length - 1; i >= 0 && oldCount < wanted.size; i--) {
      const change = this.changes[i] as Change;
      if (wanted.has(change.id) && !changed.has(change.id)) seen.push(change.id);
      changed.add(change.id);
      const found = statusIn(change.id);
      // A node that the text does not have proves nothing.
      if (found === undefined || found === change.from || isDuring(change, found))
        unlike.delete(change.id);
      else unlike.add(change.id);
      // All nodes that changed since this change have their earlier status, so the copy may be from before it.
      if (unlike.size > 0) continue;
      oldCount = seen.length;
    }
    const [last = ""] = seen;
    const isWish = oldCount === 1 && savedMs - (this.seenMs.get(last) ?? 0) > SINGLE_STALE_MS;
    return new Set(isWish ? [] : seen.slice(0, oldCount));
  }
}

/** True if the change stands for a whole run from the journal of an earlier supervisor, and the text was read during that run. */
function isDuring({ from, to }: Change, found: NodeStatus): boolean {
  return found === "in_progress" && from === "open" && to !== "in_progress";
}
