/**
 * The plan in force: the last good `roadmap.yaml` with our own edits on top. People write the same file. What they save is
 * taken over, and our edits are made in their text again. A broken text changes nothing until it is mended.
 */
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidRoadmap, messageOf } from "../../../core/errors.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { applyEdits, type RoadmapEdit } from "../edit/edit.ts";
import { carryOver } from "../file/carry-over.ts";
import type { RoadmapFile, RoadmapText } from "../file/roadmap-file.ts";
import { findNode, type RoadmapDocument } from "../read/document.ts";
import type { RoadmapLoader } from "../read/loader.ts";
import type { RoadmapProblem } from "../read/problem.ts";
import { isOverruled, OwnChanges, type OwnChangesHooks } from "./own-changes.ts";
import { type EditGroup, editsOf, PendingEdits } from "./pending-edits.ts";

export interface PlanStoreHooks extends OwnChangesHooks {
  /** Another plan is in force. */
  onAdopted(): void;
  onRefused(problems: readonly RoadmapProblem[]): void;
  /** A person's save rules out what follows from this node: nothing of it was written. */
  onEndRefused(id: string, why: string): void;
  wake(): void;
}

/** The file's facts are looked at this often (ms). */
const LOOK_MS = 50;
/** A file that is no text is looked at this often (ms). */
const UNREADABLE_LOOK_MS = 1000;
/** A plan that was taken over this recently is new enough to say that all of it is done (ms). */
const RECENT_MS = 1000;
/** Pause after a write that the disk refused (ms). */
const WRITE_AGAIN_MS = 250;
/** A reader that runs is waited for in steps of this (ms). */
const WAIT_MS = 5;

export class PlanStore {
  private readonly file: RoadmapFile;
  private readonly loader: RoadmapLoader;
  private readonly pending: PendingEdits;
  private readonly monotonicMs: () => number;
  private readonly hooks: PlanStoreHooks;
  private readonly own: OwnChanges;
  /** The text that was read or written last. */
  private base: RoadmapText | undefined;
  /** The plan in force without what is pending: its items stand like this in the file, where no other writer changed them. */
  private disk: RoadmapDocument | undefined;
  /** The plan in force; undefined when there is none. */
  doc: RoadmapDocument | undefined;
  /** What is wrong with the text on disk; the last good plan stays in force. */
  problems: readonly RoadmapProblem[] = [];
  private isLoading = false;
  private isCarrying = false;
  /** What got into the file while its text was being read as a plan, and is not in that plan. */
  private sinceRead: RoadmapEdit[] = [];
  /** The file holds more than the plan in force: what people saved while it was being read. */
  private isBehind = false;
  /** All times are monotonic ms. */
  private adoptedAtMs = Number.NEGATIVE_INFINITY;
  private lookAtMs = 0;
  /** The disk refused a write: nothing is written before this time. */
  writeAgainMs = Number.NEGATIVE_INFINITY;

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
    this.own = new OwnChanges(monotonicMs, hooks);
  }

  get nodes(): readonly RoadmapNode[] {
    return this.doc?.nodes ?? [];
  }

  find(id: string): RoadmapNode | undefined {
    return this.doc === undefined ? undefined : findNode(this.doc, id);
  }

  /** Whether the item says a status at all: to a heading without one we add none. */
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
    // A program that saves all the time must not keep a drain from its end.
    const isOld = this.monotonicMs() - this.adoptedAtMs > RECENT_MS;
    const isReading = (this.isLoading || this.isBehind) && isOld;
    return isReading || (!this.pending.isEmpty && !this.isHeldBack);
  }

  // ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async start(): Promise<void> {
    this.tellConflicts(this.file.recoverLeftovers().conflicts);
    await this.load();
  }

  /** Notices what others saved. It is loaded in the background; `wake` tells of the end. */
  look(nowMs: number): void {
    if (this.isLoading || nowMs < this.lookAtMs) return;
    this.lookAtMs = nowMs + LOOK_MS;
    try {
      this.tellConflicts(this.file.lookAgain().conflicts);
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

  /** Takes a last look at what was replaced, and ends the thread that reads. */
  async close(): Promise<void> {
    const settled = await this.file.settle();
    this.tellConflicts(settled.conflicts);
    while (this.isLoading) await wait(WAIT_MS);
    // What was saved at the very end is not run any more, but it is counted.
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
      const file = await this.readAndCarryOver();
      const isTouched =
        this.base?.stamp !== undefined && !this.isBehind && file.text === this.base.text;
      this.base = file;
      this.isBehind = false;
      this.sinceRead = [];
      // When it was taken away, the plan in force goes on, and a status does not bring the file back.
      if (isTouched || file.stamp === undefined) return;
      const doc = await this.loader.load(file.text).catch((error: unknown) => {
        // The plan in force is not that of this text: it must not replace it, and the text is to be read again.
        this.base = undefined;
        throw error;
      });
      this.problems = doc.problems;
      if (doc.problems.length > 0) {
        this.hooks.onRefused(doc.problems);
        return;
      }
      this.adopt(doc);
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
   * Their text; with what is pending in it already, where that needs no knowledge of their plan. Some programs save a large plan
   * again before it is read, and without this no change of ours would ever get in.
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

  /** Puts what is pending into the file while the plan is still being read, or is to be read again. */
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
      (error: unknown) => this.noteDiskFault("roadmap:carry", error),
    );
  }

  /** No text at all: not UTF-8, too large, a directory. */
  private noteUnreadable({ message, hint = "" }: ErrInvalidRoadmap): void {
    this.lookAtMs = this.monotonicMs() + UNREADABLE_LOOK_MS;
    const isKnown = this.problems[0]?.message === message;
    this.problems = [{ code: "yaml", message, line: 1, col: 1, hint }];
    if (!isKnown) this.hooks.onRefused(this.problems);
  }

  /** Takes over what others saved, and puts right what an old copy of theirs has undone. */
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
    const corrections =
      before === undefined ? [] : this.own.corrections(before, theirs, editsOf(wanted));
    for (const group of [...wanted, ...corrections.map((edit) => ({ edits: [edit] }))])
      this.editAgain(group);
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

  /** Makes the same edits in what another writer saved. */
  private editAgain({ edits, endOf }: EditGroup): void {
    // A node that is there already is theirs, and counts.
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
        `two people saved the roadmap at once; what lost is kept as ${path}`,
      );
  }

  // ── changing ────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Changes the plan in force, all or nothing; `flush` writes it.
   * @param endOf the node whose end the edits follow from
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
   * Reports a status that cannot be set; the caller goes on, and the next survey sees what is true.
   * @returns false when it cannot be set
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
      return this.noteWritten();
    } catch (error) {
      this.noteDiskFault("roadmap:write", error);
      return false;
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

  /** While the file is broken, or taken away, nothing can be put into it. */
  private get isHeldBack(): boolean {
    return this.problems.length > 0 || this.base?.stamp === undefined;
  }
}
