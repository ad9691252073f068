/**
 * Remembers what the supervisor changed in the plan, and decides what to do when a person's save differs. If the person wants
 * the change, it stays. A text that was read before our changes and saved after them is an old copy: its statuses are corrected.
 */
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { idOf, type NewNode, type RoadmapEdit } from "../edit/edit.ts";
import { StatusHistory } from "../file/stale-save.ts";
import { findNode, type RoadmapDocument } from "../read/document.ts";
import type { EarlierRuns } from "./earlier-runs.ts";

export interface OwnChangesHooks {
  /** True if the node's task is in the mailbox. */
  isLive(id: string): boolean;
  /** How long ago a command set the node open (ms). */
  openedAgoMs(id: string): number | undefined;
  /** The status of a node whose last run completed and that is open; undefined when it has to run again. */
  statusAfterRun(node: RoadmapNode): NodeStatus | undefined;
  report(key: string, message: string): void;
}

/** What the supervisor has written or will write into a saved text. */
export interface OurPart {
  /** Our pending edits. They will be made in the text in any case. */
  wanted: readonly RoadmapEdit[];
  /** Folded ids of nodes whose edits we wrote into the text before it was read. Their statuses do not tell how old the text is. */
  carried: ReadonlySet<string>;
}

/** If a saved text lacks a node that was added within this time, it is an old copy: no person deleted the node (ms). */
const ADDED_STALE_MS = 5000;
/** How many nodes a message names. */
const NAMED_MAX = 5;

export class OwnChanges {
  private readonly history = new StatusHistory();
  /** If the previous supervisor was killed: how the last run of each node ended, by folded id. */
  private readonly endsBeforeKill = new Map<string, NodeStatus>();
  private readonly added = new Map<string, { node: NewNode; atMs: number }>();

  constructor(
    private readonly monotonicMs: () => number,
    private readonly hooks: OwnChangesHooks,
  ) {}

  /** Remembers runs of earlier supervisors. Must be called before any other change is noted. */
  noteEarlier({ runs, wasKilled }: EarlierRuns): void {
    const nowMs = this.monotonicMs();
    const ends = new Map<string, NodeStatus>();
    for (const { id, isCompleted, startedAgoMs, endedAgoMs } of runs) {
      const end = isCompleted ? "done" : "failed";
      // A node that had ended was set open before it ran again.
      this.history.note(id, ends.get(foldId(id)) ?? "open", "open", nowMs - startedAgoMs);
      this.history.note(id, "open", end, nowMs - startedAgoMs, nowMs - endedAgoMs);
      ends.set(foldId(id), end);
    }
    if (wasKilled) for (const [id, end] of ends) this.endsBeforeKill.set(id, end);
  }

  /** Remembers these edits. @param before the plan without them */
  note(before: RoadmapDocument, edits: readonly RoadmapEdit[]): void {
    const nowMs = this.monotonicMs();
    for (const edit of edits) {
      const from = edit.kind === "status" ? findNode(before, edit.id)?.status : undefined;
      if (edit.kind === "status" && from !== undefined)
        this.history.note(edit.id, from, edit.status, nowMs);
      else if (edit.kind === "add")
        this.added.set(foldId(edit.node.id), { node: edit.node, atMs: nowMs });
    }
  }

  /** Forgets edits that cannot be made any more. */
  forget(edits: readonly RoadmapEdit[]): void {
    for (const edit of edits) if (edit.kind === "add") this.added.delete(foldId(edit.node.id));
  }

  /**
   * Returns the edits that restore what an old copy has undone, and reports them to people.
   * @param before the plan until now
   * @param theirs the plan that another writer saved
   * @param savedMs the other writer saved at this time or later
   */
  corrections(
    before: RoadmapDocument,
    theirs: RoadmapDocument,
    { wanted, carried }: OurPart,
    savedMs: number,
  ): RoadmapEdit[] {
    const nowMs = this.monotonicMs();
    const own = idsOf(wanted);
    const differences = new Map<string, NodeStatus>();
    for (const node of before.nodes) {
      const now = findNode(theirs, node.id)?.status;
      if (now !== undefined && now !== node.status && !own.has(foldId(node.id)))
        differences.set(node.id, now);
    }
    const statusIn = statusesOf(theirs, differences, carried);
    const stale = this.history.staleIds(differences, statusIn, savedMs);
    const edits: RoadmapEdit[] = [];
    for (const [key, { node, atMs }] of this.added) {
      if (findNode(theirs, key) !== undefined || own.has(key)) continue;
      const isOldCopy = nowMs - atMs < ADDED_STALE_MS || stale.size > 0;
      const status = findNode(before, key)?.status ?? "open";
      if (isOldCopy) edits.push({ kind: "add", node: { ...node, status } });
      else this.added.delete(key);
    }
    const overruled: string[] = [];
    for (const [id, status] of differences) {
      const ours = findNode(before, id);
      const saved = findNode(theirs, id);
      if (ours === undefined || saved === undefined) continue;
      if (status === "open" && this.hooks.isLive(id)) {
        // A node that runs is not open, whatever the file says.
        edits.push({ kind: "status", id, status: "in_progress" });
        if (!stale.has(foldId(id))) this.tellInFlight(id);
      } else if (stale.has(foldId(id)) && !isWish(ours, saved) && !this.isOpened(saved)) {
        edits.push({ kind: "status", id, status: ours.status });
        overruled.push(`${id} stays ${ours.status}`);
      }
    }
    if (overruled.length > 0) this.tellOverruled(overruled);
    return edits;
  }

  /**
   * Returns the edits for an old copy that a person saved after a supervisor was killed: they restore what the copy has undone.
   * @param first the first plan that was read
   * @param savedAgoMs how long ago it was saved
   */
  correctionsAtStart(
    first: RoadmapDocument,
    { wanted, carried }: OurPart,
    savedAgoMs: number,
  ): RoadmapEdit[] {
    const own = idsOf(wanted);
    const differences = new Map<string, NodeStatus>();
    for (const [id, end] of this.endsBeforeKill) {
      const status = findNode(first, id)?.status;
      const mayRun = status === "open" || status === "failed" || status === "needs_human";
      if (mayRun && end === "done" && !own.has(id)) differences.set(id, status);
    }
    const statusIn = statusesOf(first, differences, carried);
    const savedMs = this.monotonicMs() - savedAgoMs;
    const edits: RoadmapEdit[] = [];
    for (const key of this.history.staleIds(differences, statusIn, savedMs)) {
      const node = findNode(first, key);
      const status = node === undefined ? undefined : this.afterRun(node);
      if (node !== undefined && status !== undefined)
        edits.push({ kind: "status", id: node.id, status });
    }
    if (edits.length > 0) this.tellOverruled(edits.map((edit) => `${idOf(edit)} stays done`));
    return edits;
  }

  private afterRun(node: RoadmapNode): NodeStatus | undefined {
    try {
      return this.isOpened(node) ? undefined : this.hooks.statusAfterRun(node);
    } catch (error) {
      this.hooks.report(
        `ended:${node.id}`,
        `cannot read how ${node.id} ended: ${messageOf(error)}`,
      );
      return undefined;
    }
  }

  /** True if a command set the node open after our last change of its status. Then the open status is not from an old copy. */
  private isOpened({ id, status }: RoadmapNode): boolean {
    if (status !== "open") return false;
    try {
      // Read the clock together with the age of the command: an earlier reading would make the command look older than it is.
      const nowMs = this.monotonicMs();
      const agoMs = this.hooks.openedAgoMs(id) ?? Number.POSITIVE_INFINITY;
      return agoMs < nowMs - (this.history.lastAtMs(id) ?? nowMs);
    } catch (error) {
      this.hooks.report(`opened:${id}`, `cannot read the kv of ${id}: ${messageOf(error)}`);
      return false;
    }
  }

  private tellInFlight(id: string): void {
    this.hooks.report(
      `roadmap:in-flight ${id}`,
      `${id} is open in the saved roadmap, but it is in flight, and stays in_progress; ` +
        `to begin it anew: mailchute cancel --requeue ${id}`,
    );
  }

  private tellOverruled(overruled: readonly string[]): void {
    const more = overruled.length > NAMED_MAX ? ` and ${overruled.length - NAMED_MAX} more` : "";
    this.hooks.report(
      `roadmap:overruled ${overruled.join()}`,
      `the saved roadmap has earlier statuses, and is taken for an old copy: ${overruled.slice(0, NAMED_MAX).join(", ")}${more}; ` +
        "to run a node again: mailchute node set-status ID open",
    );
  }
}

/** Returns the status that the person wrote for a node; undefined where we wrote ours into the text. */
function statusesOf(
  doc: RoadmapDocument,
  differences: ReadonlyMap<string, NodeStatus>,
  carried: ReadonlySet<string>,
): (foldedId: string) => NodeStatus | undefined {
  const theirOwn = new Set([...differences.keys()].map(foldId));
  return (id) => (carried.has(id) && !theirOwn.has(id) ? undefined : findNode(doc, id)?.status);
}

function idsOf(edits: readonly RoadmapEdit[]): Set<string> {
  return new Set(edits.map((edit) => foldId(idOf(edit))));
}

/** True if a person blocked the node or marked it as ended while it was about to be launched. Then it is not launched. */
export function isOverruled(
  edit: RoadmapEdit,
  before: RoadmapDocument | undefined,
  theirs: RoadmapDocument,
): boolean {
  if (edit.kind !== "status" || edit.status !== "in_progress" || before === undefined) return false;
  const now = findNode(theirs, edit.id)?.status;
  if (now === undefined || now === "open" || now === "in_progress") return false;
  return now !== findNode(before, edit.id)?.status;
}

/**
 * True if a person wants the node to run, although an old copy might look the same. A failed or asking node has no result that
 * another run could spoil. If the node's text has changed, the saved text is not an old copy.
 */
function isWish(ours: RoadmapNode, saved: RoadmapNode): boolean {
  if (saved.status !== "open") return false;
  if (ours.status === "failed" || ours.status === "needs_human") return true;
  return !isDeepStrictEqual({ ...ours, ...NOT_TEXT }, { ...saved, ...NOT_TEXT });
}

/** Properties that can change while the text of the item stays: its place, and what the supervisor sets. */
const NOT_TEXT = {
  order: 0,
  epic: "",
  milestone: "",
  status: "open",
  reopened: 0,
};
