/**
 * The current plan: the last valid `roadmap.yaml` with the supervisor's edits on top. People write the same file. When they save
 * it, their text is loaded and our edits are made in it again. A broken text changes nothing until a person fixes it.
 */
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidRoadmap, messageOf } from "../../../core/errors.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { applyEdits, hasKey, type RoadmapEdit } from "../edit/edit.ts";
import { carryOver } from "../file/carry-over.ts";
import type { RoadmapFile, RoadmapText } from "../file/roadmap-file.ts";
import { findNode, type RoadmapDocument } from "../read/document.ts";
import type { RoadmapLoader } from "../read/loader.ts";
import type { RoadmapProblem } from "../read/problem.ts";
import { type EarlierRuns, NO_EARLIER_RUNS } from "./earlier-runs.ts";
import { isOverruled, OwnChanges, type OwnChangesHooks } from "./own-changes.ts";
import { type EditGroup, editsOf, PendingEdits } from "./pending-edits.ts";

export interface PlanStoreHooks extends OwnChangesHooks {
  /** Called when another plan was loaded. */
  onAdopted(): void;
  onRefused(problems: readonly RoadmapProblem[]): void;
  /** Called when a person's save makes the edits that follow from this node's end impossible. None of them was written. */
  onEndRefused(id: string, why: string): void;
  wake(): void;
}

/** How often the file is checked for changes (ms). */
const LOOK_MS = 50;
/** How often a file that is not text is checked (ms). */
const UNREADABLE_LOOK_MS = 1000;
/** If the plan was loaded within this time, a newer save of the file does not delay the end of a drain (ms). */
const RECENT_MS = 1000;
/** Pause after a failed write (ms). */
const WRITE_AGAIN_MS = 250;
/** Pause between checks whether a read or a write has ended (ms). */
const WAIT_MS = 5;
const FLUSH_TRIES_MAX = 200;

export class PlanStore {
  private readonly pending: PendingEdits;
  private readonly own: OwnChanges;
  /** The text that was read or written last. */
  private base: RoadmapText | undefined;
  /** The current plan without pending edits. The file has these items, except where another writer changed them. */
  private disk: RoadmapDocument | undefined;
  /** The current plan; undefined if there is none. */
  doc: RoadmapDocument | undefined;
  /** What is wrong with the text on disk. If there is a problem, the last valid plan is used. */
  problems: readonly RoadmapProblem[] = [];
  private isLoading = false;
  private isCarrying = false;
  /** Edits that were written into the file while it was being loaded. The loaded plan lacks them. */
  private sinceRead: RoadmapEdit[] = [];
  /** True if the file has changes by another writer that are not loaded yet. */
  private isBehind = false;
  /** All times are monotonic ms. */
  /** When the file last held the text that we know. A text that is found later was saved after this time. */
  private knownAtMs = Number.NEGATIVE_INFINITY;
  private adoptedAtMs = Number.NEGATIVE_INFINITY;
  private lookAtMs = 0;
  /** Nothing is written before this time, because a write failed. */
  writeAgainMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly file: RoadmapFile,
    private readonly loader: RoadmapLoader,
    pendingPath: string,
    private readonly monotonicMs: () => number,
    private readonly hooks: PlanStoreHooks,
  ) {
    this.pending = new PendingEdits(pendingPath);
    this.own = new OwnChanges(monotonicMs, hooks);
  }

  get nodes(): readonly RoadmapNode[] {
    return this.doc?.nodes ?? [];
  }

  find(id: string): RoadmapNode | undefined {
    return this.doc === undefined ? undefined : findNode(this.doc, id);
  }

  /** True if the item has a key `status`. Containers without one do not get one. */
  saysStatus(node: RoadmapNode): boolean {
    return this.doc !== undefined && hasKey(this.doc, node, "status");
  }

  get hasPending(): boolean {
    // A program that saves the file again and again must not delay the end of a drain.
    const isOld = this.monotonicMs() - this.adoptedAtMs > RECENT_MS;
    const isReading = (this.isLoading || this.isBehind) && isOld;
    return isReading || (!this.pending.isEmpty && !this.isHeldBack);
  }

  // ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async start(earlier: EarlierRuns = NO_EARLIER_RUNS): Promise<void> {
    this.own.noteEarlier(earlier);
    this.tellConflicts(this.file.replaced.recoverLeftovers().conflicts);
    await this.load();
  }

  /** Makes the next look check the file at once, even if the plan was loaded just now. Otherwise a drain might end before a save is read. */
  expectSave(): void {
    this.lookAtMs = 0;
    this.adoptedAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Notices that another writer saved the file, and loads it in the background. Calls `wake` at the end. */
  look(nowMs: number): void {
    if (this.isLoading || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    try {
      this.tellConflicts(this.file.replaced.lookAgain().conflicts);
      const isNew = this.base === undefined || this.file.hasChanged(this.base);
      if (!isNew && !this.isBehind) {
        this.knownAtMs = nowMs;
        return;
      }
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

  /** Checks the replaced files a last time, and ends the thread that reads plans. */
  async close(): Promise<void> {
    const settled = await this.file.replaced.settle();
    this.tellConflicts(settled.conflicts);
    while (this.isLoading) await wait(WAIT_MS);
    // Nodes that a person saved at the very end do not run any more, but they are counted.
    const isNew = this.base !== undefined && this.file.hasChanged(this.base);
    if (settled.hasChanged || isNew || this.isBehind) {
      await this.load();
      this.flush();
    }
    await this.loader.close();
  }

  private async load(): Promise<void> {
    this.isLoading = true;
    try {
      while (this.isCarrying) await wait(WAIT_MS);
      const savedMs = this.knownAtMs;
      const file = await this.readAndCarryOver();
      this.knownAtMs = this.monotonicMs();
      const isTouched =
        this.base?.stamp !== undefined && !this.isBehind && file.text === this.base.text;
      this.base = file;
      this.isBehind = false;
      this.sinceRead = [];
      // If a person removed the file, the current plan goes on, and a changed status does not create the file again.
      if (isTouched || file.stamp === undefined) return;
      const doc = await this.loader.load(file.text).catch((error: unknown) => {
        // The current plan is not made from this text, so it must not overwrite it. The text is read again.
        this.base = undefined;
        throw error;
      });
      this.problems = doc.problems;
      if (doc.problems.length > 0) {
        this.hooks.onRefused(doc.problems);
        return;
      }
      this.adopt(doc, savedMs);
    } catch (error) {
      if (!(error instanceof ErrInvalidRoadmap)) throw error;
      this.noteUnreadable(error);
      return;
    } finally {
      this.isLoading = false;
    }
    this.hooks.onAdopted();
  }

  /**
   * Reads another writer's text, and writes pending edits into it where that is possible without parsing it. Some programs save
   * a large plan again before it is parsed; without this, our edits would never be written.
   */
  private async readAndCarryOver(): Promise<RoadmapText> {
    this.isCarrying = true;
    try {
      for (;;) {
        const theirs = await this.file.read();
        const { disk, doc, pending } = this;
        const isCarried = disk !== undefined && doc !== undefined && !pending.isEmpty;
        if (!isCarried || theirs.stamp === undefined) return theirs;
        const text = carryOver(disk, doc, pending.edits, theirs.text);
        if (text !== undefined) pending.noteCarried();
        const outcome = text === undefined ? undefined : this.file.replace(theirs, text);
        if (outcome === undefined || outcome.kind === "gone") return theirs;
        if (outcome.kind === "changed") continue;
        this.noteWritten();
        return outcome.file;
      }
    } finally {
      this.isCarrying = false;
    }
  }

  /** Writes pending edits into the file while the plan is still being loaded, or must be loaded again. */
  private carry(): void {
    if (this.isCarrying) return;
    this.readAndCarryOver().then(
      (file) => {
        // If edits are still pending, we did not write this text, and it may lack them.
        if (!this.pending.isEmpty) return;
        this.base = file;
        this.isBehind = true;
        this.hooks.wake();
      },
      (error: unknown) => this.noteDiskFault("roadmap:carry", error),
    );
  }

  /** Reports a file that is not a usable text: not UTF-8, too large, or a directory. */
  private noteUnreadable({ message, hint = "" }: ErrInvalidRoadmap): void {
    this.lookAtMs = this.monotonicMs() + UNREADABLE_LOOK_MS;
    const isKnown = this.problems[0]?.message === message;
    this.problems = [{ code: "yaml", message, line: 1, col: 1, hint }];
    if (!isKnown) this.hooks.onRefused(this.problems);
  }

  /** Makes another writer's plan the current one, and restores what an old copy has undone. */
  private adopt(read: RoadmapDocument, savedMs: number): void {
    const before = this.doc;
    const theirs = this.withWritten(read);
    // A person has saved the file again: it is loaded next.
    this.isBehind = theirs.text !== this.base?.text;
    const wanted = this.pending.take().map(({ edits, ...rest }): EditGroup => {
      return { ...rest, edits: edits.filter((edit) => !isOverruled(edit, this.disk, theirs)) };
    });
    this.doc = theirs;
    this.disk = theirs;
    this.adoptedAtMs = this.monotonicMs();
    const ours = { wanted: editsOf(wanted), carried: this.pending.carried };
    const corrections =
      before === undefined
        ? this.own.correctionsAtStart(theirs, ours, this.file.savedAgoMs())
        : this.own.corrections(before, theirs, ours, savedMs);
    this.pending.forgetCarried(this.sinceRead);
    for (const group of [...wanted, ...corrections.map((edit) => ({ edits: [edit] }))])
      this.editAgain(group);
  }

  /** Adds the edits that were written while the plan was being loaded. */
  private withWritten(theirs: RoadmapDocument): RoadmapDocument {
    let doc = theirs;
    for (const edit of this.sinceRead) {
      try {
        doc = applyEdits(doc, [edit]);
      } catch {
        // A person has changed the same item: the next load brings that change.
      }
    }
    return doc;
  }

  /** Makes the same edits in the plan that another writer saved. */
  private editAgain({ edits, endOf }: EditGroup): void {
    // If the node exists already, the other writer added it, and it stays.
    const missing = edits.filter(
      (edit) => edit.kind !== "add" || this.find(edit.node.id) === undefined,
    );
    try {
      this.edit(missing, endOf);
    } catch (error) {
      this.own.forget(missing);
      const why = messageOf(error);
      if (endOf !== undefined) this.hooks.onEndRefused(endOf, why);
      else this.hooks.report("roadmap:rebase", `an edit of the plan is no longer possible: ${why}`);
    }
  }

  private tellConflicts(paths: readonly string[]): void {
    for (const path of paths)
      this.hooks.report(
        `roadmap:${path}`,
        `two texts of the roadmap were saved at once; the one that lost is kept as ${path}`,
      );
  }

  // ── changing ────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Makes these edits in the current plan, all or none; `flush` writes them.
   * @param endOf the node whose end caused the edits
   * @throws ErrInvalidRoadmap when an edit is impossible
   */
  edit(edits: readonly RoadmapEdit[], endOf?: string): void {
    if (this.doc === undefined || edits.length === 0) return;
    const before = this.doc;
    this.doc = applyEdits(before, edits);
    this.own.note(before, edits);
    this.pending.add({ edits, ...(endOf === undefined ? {} : { endOf }) });
  }

  /**
   * Sets a status. If that is impossible, reports it; the caller goes on, and the next comparison with the mailbox corrects it.
   * @returns false if the status cannot be set
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

  /** Why these edits cannot be made; undefined if they can. */
  explainRefused(edits: readonly RoadmapEdit[]): string | undefined {
    if (this.doc === undefined) return "there is no plan";
    try {
      applyEdits(this.doc, edits);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Writes pending edits. @returns true if they survive a crash */
  flush(): boolean {
    if (this.pending.isEmpty && this.pending.isSaved) return true;
    if (this.doc === undefined || this.base === undefined) return false;
    if (this.monotonicMs() < this.writeAgainMs) return false;
    try {
      if (this.pending.isEmpty || this.isHeldBack) return this.pending.save();
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
      this.knownAtMs = this.monotonicMs();
      return this.noteWritten();
    } catch (error) {
      this.noteDiskFault("roadmap:write", error);
      return false;
    }
  }

  /** Waits until all edits are on disk; gives up after some tries, because the disk may be full. */
  async flushed(): Promise<void> {
    for (let tries = 0; tries < FLUSH_TRIES_MAX && !this.flush(); tries++) {
      this.look(this.monotonicMs());
      await wait(WAIT_MS);
    }
  }

  private noteWritten(): boolean {
    this.disk = this.doc;
    const groups = this.pending.take();
    if (this.isLoading) this.sinceRead.push(...editsOf(groups));
    return this.pending.save();
  }

  private noteDiskFault(key: string, error: unknown): void {
    this.writeAgainMs = this.monotonicMs() + WRITE_AGAIN_MS;
    this.hooks.report(key, `cannot write the roadmap: ${messageOf(error)}`);
  }

  /** True while the file is broken or removed: then nothing can be written into it. */
  private get isHeldBack(): boolean {
    return this.problems.length > 0 || this.base?.stamp === undefined;
  }
}
