/**
 * The plan in force: the last good `roadmap.yaml` with our own edits on top. People write the same file: what they save is
 * taken over, what we want is put into their text anew, and a broken text changes nothing until it is mended.
 */
import { isDeepStrictEqual } from "node:util";
import { ErrInvalidRoadmap, messageOf } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { applyEdits, type NewNode, type RoadmapEdit } from "../edit/edit.ts";
import { carryOver } from "../file/carry-over.ts";
import type { RoadmapFile, RoadmapText } from "../file/roadmap-file.ts";
import { StatusHistory } from "../file/stale-save.ts";
import { findNode, type RoadmapDocument } from "../read/document.ts";
import type { RoadmapLoader } from "../read/loader.ts";
import type { RoadmapProblem } from "../read/problem.ts";
import { type EditGroup, editsOf, PendingEdits } from "./pending-edits.ts";

export interface PlanStoreHooks {
  /** Another plan is in force. */
  onAdopted(): void;
  onRefused(problems: readonly RoadmapProblem[]): void;
  /** Whether the mailbox holds the node's task. */
  isLive(id: string): boolean;
  /** How long ago a command has set the node open (ms). */
  openedAgoMs(id: string): number | undefined;
  /** What follows from this node cannot be written any more, after what a person has saved: nothing of it was. */
  onEndRefused(id: string, why: string): void;
  report(key: string, message: string): void;
  wake(): void;
}

/** Looking at the file's facts this often is enough (ms). */
const LOOK_MS = 50;
const CARRY_LOOK_MS = 5;
/** A plan that was taken over within this time is new enough to say that all of it is done (ms). */
const RECENT_MS = 1000;
/** Pause after a write that the disk has refused (ms). */
const WRITE_AGAIN_MS = 250;
/** A file that is no text is looked at again this often (ms). */
const UNREADABLE_LOOK_MS = 1000;
/** A node that we added and that is missing from a text saved within this time was not deleted: the text is older (ms). */
const ADDED_STALE_MS = 5000;
/** A message names so many nodes. */
const TOLD_MAX = 5;

export class PlanStore {
  private readonly file: RoadmapFile;
  private readonly loader: RoadmapLoader;
  private readonly pending: PendingEdits;
  private readonly monotonicMs: () => number;
  private readonly hooks: PlanStoreHooks;
  private readonly history = new StatusHistory();
  private readonly added = new Map<string, { node: NewNode; atMs: number }>();
  private base: RoadmapText | undefined;
  private isLoading = false;
  /** When the plan in force was taken over from the file (monotonic ms). Changes of our own do not count. */
  private adoptedAtMs = Number.NEGATIVE_INFINITY;
  private isCarrying = false;
  /** What got into the file while its text was being read as a plan, and is not in that plan. */
  private sinceRead: RoadmapEdit[] = [];
  /** The file holds more than the plan in force: what people saved while it was being read. */
  private isBehind = false;
  private lookAtMs = 0;
  /** Monotonic ms: the disk has refused what is pending, and is not asked before. */
  writeAgainMs = Number.NEGATIVE_INFINITY;
  /** The same without what is pending: its items stand in the file like this, where no other writer has changed them. */
  private disk: RoadmapDocument | undefined;
  /** The plan in force; undefined when there is none. */
  doc: RoadmapDocument | undefined;
  /** What is wrong with the text on disk; the last good plan stays in force. */
  problems: readonly RoadmapProblem[] = [];

  constructor(
    file: RoadmapFile,
    loader: RoadmapLoader,
    pendingPath: string,
    monotonicMs: () => number,
    hooks: PlanStoreHooks,
  ) {
    this.file = file;
    this.loader = loader;
    this.pending = new PendingEdits(pendingPath);
    this.monotonicMs = monotonicMs;
    this.hooks = hooks;
  }

  get nodes(): readonly RoadmapNode[] {
    return this.doc?.nodes ?? [];
  }

  find(id: string): RoadmapNode | undefined {
    return this.doc === undefined ? undefined : findNode(this.doc, id);
  }

  /** Whether the item says a status at all: to a heading that has none we add none. */
  saysStatus(node: RoadmapNode): boolean {
    if (this.doc === undefined) return false;
    const { text, places } = this.doc;
    let at = places.spans[2 * node.order] ?? 0;
    let own = "";
    for (const hole of places.holes.get(node.order) ?? []) {
      own += text.slice(at, hole.start);
      at = hole.end;
    }
    own += text.slice(at, places.spans[2 * node.order + 1]);
    return /(?:^|[\s{,"'])status["']?\s*:/.test(own);
  }

  get hasPending(): boolean {
    const isOld = this.monotonicMs() - this.adoptedAtMs > RECENT_MS;
    // A program that saves all the time must not keep a drain from its end.
    return (
      ((this.isLoading || this.isBehind) && isOld) || (!this.pending.isEmpty && !this.isHeldBack)
    );
  }

  /** Reads the plan at the start. */
  async start(): Promise<void> {
    for (const path of this.file.recoverLeftovers().conflicts) this.tellConflict(path);
    await this.load();
  }

  /** Notices what others saved. A load goes on in the background; `wake` tells of its end. */
  look(nowMs: number): void {
    if (this.isLoading || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    try {
      for (const path of this.file.lookAgain().conflicts) this.tellConflict(path);
      const isNew = this.base === undefined || this.file.hasChanged(this.base);
      if (!isNew && !this.isBehind) return;
    } catch (error) {
      this.hooks.report("roadmap:read", `cannot look at the roadmap: ${messageOf(error)}`);
      return;
    }
    this.load().then(
      () => this.hooks.wake(),
      (error: unknown) =>
        this.hooks.report("roadmap:load", `cannot load the roadmap: ${messageOf(error)}`),
    );
  }

  /** The last look at what was replaced, and an end to the thread that reads. */
  async close(): Promise<void> {
    const settled = await this.file.settle();
    for (const path of settled.conflicts) this.tellConflict(path);
    while (this.isLoading) await new Promise((resolve) => setTimeout(resolve, CARRY_LOOK_MS));
    // What was saved at the very end is not run any more, but it is counted.
    const isNew = this.base !== undefined && this.file.hasChanged(this.base);
    if (settled.hasChanged || isNew || this.isBehind) {
      await this.load();
      this.flush();
    }
    await this.loader.close();
  }

  /**
   * Changes the plan in force, all or nothing; `flush` writes it.
   * @param endOf the node whose end the edits follow from
   * @throws ErrInvalidRoadmap when an edit is impossible
   */
  edit(edits: readonly RoadmapEdit[], endOf?: string): void {
    if (this.doc === undefined || edits.length === 0) return;
    const before = this.doc;
    this.doc = applyEdits(before, edits);
    const nowMs = this.monotonicMs();
    for (const edit of edits) {
      if (edit.kind === "status") {
        const from = findNode(before, edit.id)?.status;
        if (from !== undefined) this.history.note(edit.id, from, edit.status, nowMs);
      } else if (edit.kind === "add")
        this.added.set(foldId(edit.node.id), { node: edit.node, atMs: nowMs });
    }
    this.pending.add({ edits, ...(endOf === undefined ? {} : { endOf }) });
  }

  /**
   * What cannot be written is told; the caller goes on, and the next survey sees what is true.
   * @returns false when it cannot be written
   */
  setStatus(id: string, status: NodeStatus): boolean {
    try {
      this.edit([{ kind: "status", id, status }]);
      return true;
    } catch (error) {
      this.hooks.report(`status:${id}`, `cannot set ${id} to ${status}: ${messageOf(error)}`);
      return false;
    }
  }

  /** Why these edits cannot be made, or undefined. */
  explainRefused(edits: readonly RoadmapEdit[]): string | undefined {
    if (this.doc === undefined) return "there is no plan";
    try {
      applyEdits(this.doc, edits);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Writes what is pending. @returns true when it will survive a crash */
  flush(): boolean {
    if (this.pending.isEmpty) return true;
    if (this.doc === undefined || this.base === undefined) return false;
    if (this.monotonicMs() < this.writeAgainMs) return false;
    try {
      if (this.isHeldBack) return this.pending.save();
      if (this.isLoading || this.isBehind) {
        this.carry();
        return false;
      }
      const outcome = this.file.replace(this.base, this.doc.text);
      if (outcome.kind === "gone") return this.pending.save();
      if (outcome.kind === "changed") {
        this.lookAtMs = 0;
        return false;
      }
      this.base = outcome.file;
      this.wasWritten();
      return true;
    } catch (error) {
      this.noteRefused("roadmap:write", error);
      return false;
    }
  }

  private noteRefused(key: string, error: unknown): void {
    this.writeAgainMs = this.monotonicMs() + WRITE_AGAIN_MS;
    this.hooks.report(key, `cannot write the roadmap: ${messageOf(error)}`);
  }

  /** While the file is broken, or taken away, nothing can be put into it. */
  private get isHeldBack(): boolean {
    return this.problems.length > 0 || this.base?.stamp === undefined;
  }

  private tellConflict(path: string): void {
    this.hooks.report(
      `roadmap:${path}`,
      `two people saved the roadmap at once; what lost is kept as ${path}`,
    );
  }

  /** A command has set it open since we last set its status: then it is no old copy that says so. */
  private isOpened({ id, status }: RoadmapNode): boolean {
    if (status !== "open") return false;
    try {
      // Both times are read here together: with an earlier `nowMs` the command would seem older than it is.
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
    const more = overruled.length > TOLD_MAX ? ` and ${overruled.length - TOLD_MAX} more` : "";
    this.hooks.report(
      `roadmap:overruled ${overruled.join()}`,
      `the saved roadmap has statuses of before, and is taken for an old copy: ${overruled.slice(0, TOLD_MAX).join(", ")}${more}; ` +
        "to run a node again: mailchute node set-status ID open",
    );
  }

  private async load(): Promise<void> {
    this.isLoading = true;
    try {
      while (this.isCarrying) await new Promise((resolve) => setTimeout(resolve, CARRY_LOOK_MS));
      const file = await this.readAndCarryOver();
      const isSame =
        this.base?.stamp !== undefined && !this.isBehind && file.text === this.base.text;
      this.base = file;
      this.isBehind = false;
      this.sinceRead = [];
      // Touched; or taken away: what is in force goes on, and a status does not bring the file back.
      if (isSame || file.stamp === undefined) return;
      const doc = await this.loader.load(file.text);
      this.problems = doc.problems;
      if (doc.problems.length > 0) {
        this.hooks.onRefused(doc.problems);
        return;
      }
      this.adopt(doc);
    } catch (error) {
      if (!(error instanceof ErrInvalidRoadmap)) throw error;
      // No text at all: not UTF-8, too large, a directory.
      this.lookAtMs = this.monotonicMs() + UNREADABLE_LOOK_MS;
      const problem = { code: "yaml", message: error.message, line: 1, col: 1 } as const;
      const isKnown = this.problems[0]?.message === error.message;
      this.problems = [{ ...problem, hint: error.hint ?? "" }];
      if (!isKnown) this.hooks.onRefused(this.problems);
      return;
    } finally {
      this.isLoading = false;
    }
    this.hooks.onAdopted();
  }

  /** Puts what is pending into what people saved, while the plan is still being read, or is to be read again. */
  private carry(): void {
    if (this.isCarrying) return;
    this.readAndCarryOver().then(
      (file) => {
        // Only what we have written ourselves is known to hold what was pending.
        if (!this.pending.isEmpty) return;
        this.base = file;
        this.isBehind = true;
        this.hooks.wake();
      },
      (error: unknown) => this.noteRefused("roadmap:carry", error),
    );
  }

  /** The text of the others, with the pending changes in it if these can be made without reading it. */
  private async readAndCarryOver(): Promise<RoadmapText> {
    this.isCarrying = true;
    try {
      return await this.tryToCarryOver();
    } finally {
      this.isCarrying = false;
    }
  }

  private async tryToCarryOver(): Promise<RoadmapText> {
    for (;;) {
      const theirs = await this.file.read();
      const { disk, doc, pending } = this;
      if (disk === undefined || doc === undefined || pending.isEmpty) return theirs;
      if (theirs.stamp === undefined) return theirs;
      const text = carryOver(disk, doc, pending.edits, theirs.text);
      if (text === undefined) return theirs;
      const outcome = this.file.replace(theirs, text);
      if (outcome.kind === "gone") return theirs;
      if (outcome.kind === "changed") continue;
      this.wasWritten();
      return outcome.file;
    }
  }

  /** What was pending is on disk. */
  private wasWritten(): void {
    this.disk = this.doc;
    const written = editsOf(this.pending.take());
    if (this.isLoading) this.sinceRead.push(...written);
    this.pending.save();
  }

  /** Takes over the text that others saved, and restores changes that an old copy of theirs has undone. */
  private adopt(read: RoadmapDocument): void {
    const before = this.doc;
    const theirs = this.withWritten(read);
    // A person has saved as well: that is to be read next.
    this.isBehind = theirs.text !== this.base?.text;
    const wanted = this.pending.take().map(({ edits, ...rest }): EditGroup => {
      return { ...rest, edits: edits.filter((edit) => !isOverruled(edit, this.disk, theirs)) };
    });
    this.doc = theirs;
    this.disk = theirs;
    this.adoptedAtMs = this.monotonicMs();
    const corrections = this.corrections(before, theirs, editsOf(wanted));
    for (const group of [...wanted, ...corrections.map((edit) => ({ edits: [edit] }))])
      this.editAgain(group);
  }

  /** The same edits in what another writer has saved. */
  private editAgain({ edits, endOf }: EditGroup): void {
    // What stands there already is theirs, and counts.
    const missing = edits.filter(
      (edit) => edit.kind !== "add" || this.find(edit.node.id) === undefined,
    );
    try {
      this.edit(missing, endOf);
    } catch (error) {
      for (const edit of missing) if (edit.kind === "add") this.added.delete(foldId(edit.node.id));
      if (endOf !== undefined) this.hooks.onEndRefused(endOf, messageOf(error));
      else
        this.hooks.report(
          "roadmap:rebase",
          `an edit of the plan is no longer possible: ${messageOf(error)}`,
        );
    }
  }

  /** With what was written while it was read. */
  private withWritten(theirs: RoadmapDocument): RoadmapDocument {
    let doc = theirs;
    for (const edit of this.sinceRead) {
      try {
        doc = applyEdits(doc, [edit]);
      } catch {
        // A person has changed just that: the next read tells.
      }
    }
    return doc;
  }

  private corrections(
    before: RoadmapDocument | undefined,
    theirs: RoadmapDocument,
    wanted: readonly RoadmapEdit[],
  ): RoadmapEdit[] {
    if (before === undefined) return [];
    const nowMs = this.monotonicMs();
    const own = new Set(wanted.map((edit) => foldId(edit.kind === "add" ? edit.node.id : edit.id)));
    const differences = new Map<string, NodeStatus>();
    for (const node of before.nodes) {
      const now = findNode(theirs, node.id)?.status;
      if (now !== undefined && now !== node.status && !own.has(foldId(node.id)))
        differences.set(node.id, now);
    }
    const stale = this.history.staleIds(differences, (id) => findNode(theirs, id)?.status, nowMs);
    const edits: RoadmapEdit[] = [];
    for (const [key, { node, atMs }] of this.added) {
      if (findNode(theirs, key) !== undefined || own.has(key)) continue;
      // Deleted on purpose, unless the text is older than the node.
      const status = findNode(before, key)?.status ?? "open";
      if (nowMs - atMs < ADDED_STALE_MS || stale.size > 0)
        edits.push({ kind: "add", node: { ...node, status } });
      else this.added.delete(key);
    }
    const overruled: string[] = [];
    for (const [id, status] of differences) {
      const ours = findNode(before, id);
      const saved = findNode(theirs, id);
      if (ours === undefined || saved === undefined) continue;
      // What runs is not open, whatever the file says.
      const isRunning = this.hooks.isLive(id) && status === "open";
      if (isRunning) {
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
}

/** A person may have set a node blocked or done just before its launch; that counts. */
function isOverruled(
  edit: RoadmapEdit,
  before: RoadmapDocument | undefined,
  theirs: RoadmapDocument,
): boolean {
  if (edit.kind !== "status" || edit.status !== "in_progress" || before === undefined) return false;
  const now = findNode(theirs, edit.id)?.status;
  return (
    now !== undefined &&
    now !== "open" &&
    now !== "in_progress" &&
    now !== findNode(before, edit.id)?.status
  );
}

/**
 * Open again because a person wants it to run, even if an old copy might say the same. A node that failed or asks has no result
 * that another run would spoil, and an old copy never shows a node with another text.
 */
function isWish(ours: RoadmapNode, saved: RoadmapNode): boolean {
  if (saved.status !== "open") return false;
  if (ours.status === "failed" || ours.status === "needs_human") return true;
  return !isDeepStrictEqual({ ...ours, ...NOT_SAID }, { ...saved, ...NOT_SAID });
}

/** Where a node stands, and what we set and count: no sign of another text. */
const NOT_SAID = {
  order: 0,
  line: 0,
  col: 0,
  epic: "",
  milestone: "",
  status: "open",
  reopened: 0,
};
