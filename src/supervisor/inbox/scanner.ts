/**
 * Decides when each file of the inbox is looked at: at once when a watch reports its name, again when it was incomplete, and all
 * files in a scan. It works in slices, so that a million files block nothing.
 */

import { type BackOffByCost, backOffByCost } from "../../core/back-off.ts";
import type { Backlog } from "../../core/backlog.ts";
import { systemCode } from "../../core/errors.ts";
import type { Walk } from "../../mailbox/files/storage.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import type { FieldNotes } from "./field-notes.ts";
import {
  type FileRejections,
  InboxFiles,
  type KeyJudge,
  type ScannerEnvironment,
  type TaskQuestions,
} from "./inbox-files.ts";

/** With this many tasks to choose from, starting them comes before finding more: a scan then gets short slices (ms). */
const ENOUGH_TASKS = 10_000;
const SHORT_SLICE_MS = 1;
const SCAN_REST: BackOffByCost = { times: 10, mostMs: 300_000 };
/** How many reported names are kept; beyond that a scan is cheaper. */
const HINTS_MAX = 4096;

export class InboxScanner {
  private readonly trays: Trays;
  private readonly sweepMs: number;
  private readonly files: InboxFiles;
  private readonly keys: KeyJudge;
  private hints = new Set<string>();
  /** Files that we moved away since the last scan began, and whose ring has not come yet. */
  private readonly leaving = new Set<string>();
  private walk: Walk | undefined;
  // Not a whole number: otherwise the first fraction would change the object's shape, and V8 would discard the code that it
  // compiled for it.
  private scanDueMs = Number.NEGATIVE_INFINITY;
  private scanStartedMs = Number.NEGATIVE_INFINITY;
  private isScanWanted = true;
  private isScanned = false;
  /** Files with a key that were there at the start. They are judged in this order. */
  private early = new Set<string>();

  constructor(
    env: ScannerEnvironment,
    private readonly backlog: Backlog,
    rejections: FileRejections,
    questions: TaskQuestions,
  ) {
    const { trays, settings, facts } = env;
    this.trays = trays;
    this.sweepMs = settings.sweep_ms;
    this.keys = questions.keys;
    this.files = new InboxFiles(env, backlog, rejections, questions);
    facts.on("inbox:changed", (file) => {
      if (this.ring(file)) env.wake();
    });
    facts.on("inbox:written", (file) => this.hint(file));
    // We moved this file away: the next ring with its name reports only that.
    facts.on("task:accepted", (_id, file) => this.leaving.add(file));
    facts.on("inbox:taken", (file) => this.leaving.add(file));
    facts.on("task:duplicate", (file) => this.files.recheckDuplicate(file));
  }

  /** True once every file was looked at. */
  get isComplete(): boolean {
    return this.isScanned && this.early.size === 0;
  }

  /** True while it is not known yet whether some tasks with a key run. */
  get isJudgingKeys(): boolean {
    return this.keys.unsureCount > 0;
  }

  get fieldNotes(): FieldNotes {
    return this.files.fieldNotes;
  }

  get unsettledCount(): number {
    return this.files.incomplete.count + this.keys.unsureCount;
  }

  /** Of these, how many people should hear of. */
  get toldUnsettledCount(): number {
    return this.files.incomplete.toldCount() + this.keys.unsureCount;
  }

  /** How many files cannot be read or moved. */
  get unreadableCount(): number {
    return this.files.unreadable.count;
  }

  /** The first of these files, and what is wrong with each. */
  letBe(max: number): { name: string; why: string }[] {
    return this.files.unreadable.list(max);
  }

  /** Handles a ring for this name, or for an unknown one. @returns false when it reports only a file that we took out ourselves */
  ring(name: string | undefined): boolean {
    if (name !== undefined && this.leaving.delete(name)) return false;
    this.hint(name);
    return true;
  }

  /** Looks soon at the file with this name; an unknown name means a scan. */
  hint(name: string | undefined): void {
    if (name === undefined || this.hints.size >= HINTS_MAX) this.isScanWanted = true;
    else this.hints.add(name);
  }

  /** True while a slice of work is waiting. */
  get hasWork(): boolean {
    return this.hints.size > 0 || this.walk !== undefined || this.isScanWanted;
  }

  /** When an incomplete file must be looked at again (monotonic ms). */
  nextLookMs(): number | undefined {
    return this.files.incomplete.nextLookMs();
  }

  /** Works until there is nothing to do, or until `untilMs` (monotonic). */
  work(untilMs: number): void {
    const { clock } = this.trays;
    for (const name of this.hints) {
      this.hints.delete(name);
      this.early.delete(name);
      this.files.look(name);
      if (clock.monotonicMs() >= untilMs) return;
    }
    for (const name of this.files.incomplete.due(clock.monotonicMs())) {
      this.files.look(name);
      if (clock.monotonicMs() >= untilMs) return;
    }
    const isEnough = this.backlog.count("runnable") >= ENOUGH_TASKS;
    const scanUntilMs = isEnough ? clock.monotonicMs() + SHORT_SLICE_MS : untilMs;
    while (clock.monotonicMs() < Math.min(untilMs, scanUntilMs) && this.scanSlice());
  }

  /** Makes a whole scan due, unless the last scan took so long that the supervisor would do nothing else. */
  sweepDue(nowMs: number): void {
    if (nowMs >= this.scanDueMs) this.isScanWanted = true;
  }

  /** Starts a new scan, because the inbox was replaced and the old listing is invalid. */
  restartScan(): void {
    this.walk?.close();
    this.walk = undefined;
    this.isScanWanted = true;
  }

  private scanSlice(): boolean {
    const { clock, storage } = this.trays;
    try {
      if (this.walk === undefined) {
        if (!this.isScanWanted) return false;
        this.isScanWanted = false;
        this.leaving.clear();
        this.walk = storage.walk(this.trays.inbox);
        this.files.scanCount++;
        this.scanStartedMs = clock.monotonicMs();
      }
      const names = this.walk.next(64);
      if (names.length === 0) this.endScan();
      for (const name of names) this.see(name);
      return true;
    } catch (error) {
      this.walk?.close();
      this.walk = undefined;
      if (systemCode(error) !== "ENOENT") this.files.report("", error);
      return false;
    }
  }

  private endScan(): void {
    this.walk?.close();
    this.walk = undefined;
    if (!this.isScanned) {
      this.isScanned = true;
      this.early = new Set(this.files.endEarly());
      for (const name of this.early) {
        // Move it behind the names that rang in between.
        this.hints.delete(name);
        this.hints.add(name);
      }
    }
    const nowMs = this.trays.clock.monotonicMs();
    this.scanDueMs =
      nowMs + Math.max(this.sweepMs, backOffByCost(nowMs - this.scanStartedMs, SCAN_REST));
    const gone: string[] = [];
    for (const task of this.backlog.unseen(this.files.scanCount)) {
      // A listing may miss a name that is being renamed, so only a direct look proves that a file is gone.
      if (this.trays.storage.look(pathIn(this.trays.inbox, task.file)) === undefined)
        gone.push(task.id);
    }
    for (const id of gone) this.backlog.remove(id);
    this.files.forgetGone();
  }

  /** Handles a name that a scan has found: only unknown files are opened. */
  private see(name: string): void {
    if (this.early.has(name)) return;
    const id = /^(.+)\.(?:nd)?json$/.exec(name)?.[1];
    if (id !== undefined && this.backlog.see(id, name, this.files.scanCount)) return;
    if (!this.files.incomplete.has(name)) this.files.look(name);
  }
}
