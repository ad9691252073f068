/**
 * From names in the inbox to entries of the backlog. It looks at each file once, waits for those that are still
 * being written, and has the rest refused. It reads in slices, so that a million files block nothing.
 */
import { decodeTask, mayStillGrow } from "../../codec/task-codec.ts";
import type { Backlog } from "../../core/backlog.ts";
import { ErrInvalidTask, messageOf, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { readInboxName } from "../../core/names.ts";
import type { Settings } from "../../core/settings.ts";
import type { Task } from "../../core/task.ts";
import { waitingBatch, waitingTask } from "../../core/waiting-task.ts";
import { dropStagedLink, explainBadFile, SECOND_LINK } from "../../mailbox/dropped-file.ts";
import { isBeingRetried } from "../../mailbox/locate.ts";
import type { Refusal } from "../../mailbox/quarantine.ts";
import type { FileFacts, Walk } from "../../mailbox/storage.ts";
import { pathIn, type Trays } from "../../mailbox/trays.ts";
import type { Environment } from "../environment/environment.ts";
import { IncompleteFiles } from "./incomplete-files.ts";
import { UnreadableFiles } from "./unreadable-files.ts";

export type ScannerEnvironment = Pick<
  Environment,
  "trays" | "settings" | "alerts" | "facts" | "wake"
>;

/** What the scanner asks of ids. */
export interface IdRegistry {
  /** Whether a task of this id (in any case) is in `processing/`, or has settled; "unsure": ask again soon. */
  isTaken(id: string): boolean | "unsure";
  /** Whether results of an earlier batch of this id lie where its own would. */
  hasLeftResults(id: string): boolean;
}

/** Refuses or removes files that are not accepted. */
export interface FileRejections {
  /** The file is to be moved to `failed/`. */
  refuse(refusal: Refusal): void;
  /** Drops the file if it is the task of its id once more. "unsure": ask again. */
  dropResend(name: string, id: string): "dropped" | "other" | "unsure";
}

/** A batch that is smaller is looked into before it is accepted (bytes). */
const BATCH_LOOK_BYTES = 64 * 1024;
/** With so many tasks to choose from, having them run comes before looking at more: then a scan gets short slices (ms). */
const ENOUGH_TASKS = 10_000;
const SHORT_SLICE_MS = 1;
/** Names hinted at by the doorbell; beyond that a scan is cheaper. */
const HINTS_MAX = 4096;

export class InboxScanner {
  private readonly trays: Trays;
  private readonly backlog: Backlog;
  private readonly settings: Settings;
  private readonly alerts: ScannerEnvironment["alerts"];
  private readonly rejections: FileRejections;
  private readonly ids: IdRegistry;
  private readonly isMet: (dependency: string) => boolean;
  private hints = new Set<string>();
  /** What we moved away since the last scan began, and whose ring has not come yet. */
  private readonly leaving = new Set<string>();
  private readonly unsettled: IncompleteFiles;
  private readonly hopeless: UnreadableFiles;
  /** Names whose id was found taken when they were about to be accepted. */
  private readonly duplicates = new Set<string>();
  private walk: Walk | undefined;
  private scanCount = 0;
  // No whole numbers: the first fraction would change the shape of the object, and all that V8 has compiled for it.
  private scanDueMs = Number.NEGATIVE_INFINITY;
  private scanStartedMs = Number.NEGATIVE_INFINITY;
  private isScanWanted = true;
  /** True once every file was looked at. */
  isComplete = false;

  /** @param isMet whether a task or node that others depend on has completed */
  constructor(
    env: ScannerEnvironment,
    backlog: Backlog,
    rejections: FileRejections,
    ids: IdRegistry,
    isMet: (dependency: string) => boolean,
  ) {
    const { trays, settings, facts } = env;
    this.trays = trays;
    this.settings = settings;
    this.alerts = env.alerts;
    this.backlog = backlog;
    this.rejections = rejections;
    this.ids = ids;
    this.isMet = isMet;
    this.unsettled = new IncompleteFiles(trays.clock, settings.settle_ms);
    this.hopeless = new UnreadableFiles(trays.clock);
    facts.on("inbox:changed", (file) => {
      if (this.ring(file)) env.wake();
    });
    facts.on("inbox:written", (file) => this.hint(file));
    facts.on("task:accepted", (_id, file) => this.expectGone(file));
    facts.on("task:duplicate", (file) => this.noteDuplicate(file));
  }

  get unsettledCount(): number {
    return this.unsettled.count;
  }

  /** Files that can be neither read nor moved. */
  get unreadableCount(): number {
    return this.hopeless.count;
  }

  /** The first of them, and what is wrong with each. */
  letBe(max: number): { name: string; why: string }[] {
    return this.hopeless.list(max);
  }

  /** The doorbell rang for this name, or for an unknown one. @returns false when it rang for what we took out ourselves */
  ring(name: string | undefined): boolean {
    if (name !== undefined && this.leaving.delete(name)) return false;
    this.hint(name);
    return true;
  }

  /** We moved this file away: the next ring with its name says no more than that. */
  expectGone(name: string): void {
    this.leaving.add(name);
  }

  /** Something is to be seen under this name, or under an unknown one. */
  hint(name: string | undefined): void {
    if (name === undefined || this.hints.size >= HINTS_MAX) this.isScanWanted = true;
    else this.hints.add(name);
  }

  /** True while a slice of work is waiting to be done. */
  get hasWork(): boolean {
    return this.hints.size > 0 || this.walk !== undefined || this.isScanWanted;
  }

  /** Monotonic ms at which an unsettled file is to be looked at again. */
  nextLookMs(): number | undefined {
    return this.unsettled.nextLookMs();
  }

  /** Works until there is nothing to do or `untilMs` (monotonic). */
  work(untilMs: number): void {
    const { clock } = this.trays;
    for (const name of this.hints) {
      this.hints.delete(name);
      this.look(name);
      if (clock.monotonicMs() >= untilMs) return;
    }
    for (const name of this.unsettled.due(clock.monotonicMs())) {
      this.look(name);
      if (clock.monotonicMs() >= untilMs) return;
    }
    const isEnough = this.backlog.count("runnable") >= ENOUGH_TASKS;
    const scanUntilMs = isEnough ? clock.monotonicMs() + SHORT_SLICE_MS : untilMs;
    while (clock.monotonicMs() < Math.min(untilMs, scanUntilMs) && this.scanSlice());
  }

  /** Time for a whole scan, unless the last one was so long that scanning would be all we do. */
  sweepDue(nowMs: number): void {
    if (nowMs >= this.scanDueMs) this.isScanWanted = true;
  }

  /** The inbox was replaced: what is being listed is gone. */
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
        this.scanCount++;
        this.scanStartedMs = clock.monotonicMs();
      }
      const names = this.walk.next(64);
      if (names.length === 0) this.endScan();
      for (const name of names) this.see(name);
      return true;
    } catch (error) {
      this.walk?.close();
      this.walk = undefined;
      if (systemCode(error) !== "ENOENT") this.report("", error);
      return false;
    }
  }

  private endScan(): void {
    this.walk?.close();
    this.walk = undefined;
    this.isComplete = true;
    const nowMs = this.trays.clock.monotonicMs();
    this.scanDueMs = nowMs + Math.max(this.settings.sweep_ms, 10 * (nowMs - this.scanStartedMs));
    const gone: string[] = [];
    for (const task of this.backlog.unseen(this.scanCount)) {
      // A listing may miss a name that others rename at that moment: only its absence on a direct look counts.
      if (this.trays.storage.look(pathIn(this.trays.inbox, task.file)) === undefined)
        gone.push(task.id);
    }
    for (const id of gone) this.backlog.remove(id);
    for (const files of [this.unsettled, this.hopeless])
      for (const name of files.names())
        if (this.trays.storage.look(pathIn(this.trays.inbox, name)) === undefined)
          files.forget(name);
  }

  /** A name met in a scan: only what we do not know is opened. */
  private see(name: string): void {
    const id = /^(.+)\.(?:nd)?json$/.exec(name)?.[1];
    if (id !== undefined && this.backlog.see(id, name, this.scanCount)) return;
    if (!this.unsettled.has(name)) this.look(name);
  }

  /** Looks at one file. Whatever goes wrong with it is its own affair: the others must not wait for it. */
  private look(name: string): void {
    try {
      this.judge(name);
    } catch (error) {
      this.unsettled.forget(name);
      const facts = this.trays.storage.look(pathIn(this.trays.inbox, name));
      if (facts === undefined || this.hopeless.isLetBe(name, facts)) return;
      this.setAside(name, facts, error);
    }
  }

  private judge(name: string): void {
    const meaning = readInboxName(name);
    if (meaning.kind === "ignored") return;
    const path = pathIn(this.trays.inbox, name);
    const now = this.hopeless.has(name) ? this.trays.storage.look(path) : undefined;
    if (now !== undefined && this.hopeless.isLetBe(name, now)) return;
    if (meaning.kind === "bad") {
      this.refuse(name, undefined, "ErrInvalidTask", meaning.reason);
      return;
    }
    let read: { facts: FileFacts; bytes: Buffer | undefined };
    try {
      // Of a batch the beginning is enough, and only when that is all of it.
      read = this.trays.storage.read(path, meaning.isBatch ? BATCH_LOOK_BYTES : TASK_BYTES_MAX);
    } catch (error) {
      this.unreadable(name, path, error);
      return;
    }
    const { facts, bytes } = read;
    const { id } = meaning;
    const known = this.backlog.get(id);
    if (known !== undefined && known.file !== name) {
      const reason = `a task ${JSON.stringify(known.id)} waits already`;
      this.waitQuiet(name, facts, () => {
        // Once accepted, it may be this very task: sent again, or put back by a process that died over it.
        if (known.tray === "processing") this.refuseTaken(name, id, facts);
        else this.refuse(name, id, "ErrTaskExists", reason);
      });
      return;
    }
    if (this.duplicates.has(name)) {
      const isTaken = this.ids.isTaken(id);
      if (isTaken === "unsure") {
        this.unsettled.askAgain(name, facts);
        return;
      }
      if (isTaken || (meaning.isBatch === true && this.ids.hasLeftResults(id))) {
        this.waitQuiet(name, facts, () => this.refuseTaken(name, id, facts));
        return;
      }
      this.duplicates.delete(name);
    }
    const isBatch = meaning.isBatch === true;
    const isUnread = bytes === undefined && !isBatch ? "the file cannot be read" : undefined;
    const bytesMax = isBatch ? this.settings.batch_bytes_max : TASK_BYTES_MAX;
    const fault = explainBadFile(facts, this.settings.uids, bytesMax) ?? isUnread;
    if (fault !== undefined) {
      this.backlog.remove(id);
      const refuse = (): void => this.refuse(name, id, "ErrInvalidTask", fault);
      // A program that still appends to it would begin another file of this name.
      if (facts.kind === "file" && facts.size > bytesMax) this.waitQuiet(name, facts, refuse);
      else refuse();
      return;
    }
    // A submit that is under way holds a second link to the file; so does one that died.
    if (facts.nlink > 1) {
      this.waitQuiet(name, facts, () => this.settleSecondLink(name, id, facts));
      return;
    }
    if (meaning.isBatch === true) {
      this.judgeBatch(name, id, facts, bytes);
      return;
    }
    if (bytes === undefined || bytes.length !== facts.size) {
      this.waitQuiet(name, facts, () =>
        this.refuse(name, id, "ErrInvalidTask", "the file changes while it is read"),
      );
      return;
    }
    try {
      const { task } = decodeTask(bytes, id, path);
      this.unsettled.forget(name);
      this.admit(name, task, facts);
    } catch (error) {
      if (!(error instanceof ErrInvalidTask)) throw error;
      this.backlog.remove(id);
      const refuse = (): void => this.refuse(name, id, error.code, error.message, error.offset);
      if (mayStillGrow(error)) this.waitQuiet(name, facts, refuse);
      else refuse();
    }
  }

  /**
   * A batch is whole when no process has it open for writing and it was moved here (its change is younger than its content),
   * or when it is quiet: unlike a task it shows by nothing in it that it is whole.
   */
  private judgeBatch(name: string, id: string, facts: FileFacts, bytes: Buffer | undefined): void {
    const isEmpty = bytes !== undefined && bytes.toString("latin1").trim() === "";
    const fault = isEmpty ? "the batch holds no line" : faultOfBatch(bytes);
    if (fault !== undefined) {
      this.waitQuiet(name, facts, () => this.refuse(name, id, "ErrInvalidTask", fault));
      return;
    }
    const isMovedIn = facts.ctimeMs > facts.mtimeMs;
    const writer = isMovedIn ? this.unsettled.hasWriter(name, facts) : true;
    if (writer === "unsure") this.unsettled.askAgain(name, facts);
    else if (!writer) this.admitBatch(name, id, facts);
    else this.waitQuiet(name, facts, () => this.admitBatch(name, id, facts));
  }

  private admitBatch(name: string, id: string, facts: FileFacts): void {
    const { clock } = this.trays;
    this.unsettled.forget(name);
    const task = waitingBatch({
      id,
      file: name,
      tray: "inbox",
      attempt: 1,
      ...this.timesOf(name, facts),
    });
    this.backlog.add(task, clock.wallMs(), clock.monotonicMs());
    this.backlog.see(id, name, this.scanCount);
    this.hopeless.forget(name);
  }

  private admit(name: string, task: Task, facts: FileFacts): void {
    const { clock } = this.trays;
    const attempt = (task.attempts ?? 0) + 1;
    const waiting = waitingTask(
      task,
      { id: task.id, file: name, tray: "inbox", attempt, ...this.timesOf(name, facts) },
      this.settings.agents,
      (id) => this.isMet(id),
    );
    this.backlog.add(waiting, clock.wallMs(), clock.monotonicMs());
    this.backlog.see(task.id, name, this.scanCount);
    this.hopeless.forget(name);
  }

  /** In `processing/` a time in the future means "not before"; a dropped file with such a time means nothing by it. */
  private timesOf(
    name: string,
    { mtimeMs, ctimeMs }: FileFacts,
  ): Pick<FileFacts, "mtimeMs" | "ctimeMs"> {
    const { clock, storage, inbox } = this.trays;
    const wallMs = clock.wallMs();
    if (mtimeMs <= wallMs) return { mtimeMs, ctimeMs };
    try {
      storage.touch(pathIn(inbox, name), wallMs);
    } catch {
      // Moved away, or not ours to touch: then it may wait as long as a backoff.
    }
    return { mtimeMs: wallMs, ctimeMs };
  }

  /** Refuses only what did not change for the settle time, and that no process has open for writing. */
  private waitQuiet(name: string, facts: FileFacts, refuse: () => void): void {
    if (this.unsettled.isQuiet(name, facts)) refuse();
  }

  /** What waited under this name is gone. */
  private forget(name: string): void {
    this.unsettled.forget(name);
    const id = name.replace(/\.(?:nd)?json$/, "");
    if (this.backlog.get(id)?.file === name) this.backlog.remove(id);
  }

  private unreadable(name: string, path: string, error: unknown): void {
    const facts = this.trays.storage.look(path);
    if (facts === undefined) {
      this.forget(name);
      return;
    }
    if (this.hopeless.isLetBe(name, facts)) return;
    this.setAside(name, facts, error);
  }

  /** It is tried again with a growing delay, and reported once. */
  private setAside(name: string, facts: FileFacts, error: unknown): void {
    if (this.hopeless.note(name, facts, error)) this.report(name, error);
  }

  private report(name: string, error: unknown): void {
    this.alerts.report(`inbox:${systemCode(error)}:${name}`, `inbox/${name}: ${messageOf(error)}`);
  }

  /** Handles a second link that stays: the staged file of a dead submit is removed, any other file is refused. */
  private settleSecondLink(name: string, id: string, facts: FileFacts): void {
    if (dropStagedLink(this.trays, id, facts.ino)) {
      this.look(name);
      return;
    }
    const isTaken = isBeingRetried(this.trays, id) ? "unsure" : this.ids.isTaken(id);
    if (isTaken === "unsure") {
      this.unsettled.askAgain(name, facts);
      return;
    }
    if (isTaken) {
      // A requeue was interrupted between its two steps: the task itself is in processing/, and this is its second name.
      this.refuseTaken(name, id, facts);
      return;
    }
    this.refuse(name, id, "ErrInvalidTask", SECOND_LINK);
  }

  /** The id turned out to be taken: wait for the producer, who may be about to take the file back, then refuse it. */
  noteDuplicate(name: string): void {
    this.duplicates.add(name);
    this.look(name);
  }

  /** A task of this id is there already. */
  private refuseTaken(name: string, id: string, facts: FileFacts): void {
    if (this.hopeless.isLetBe(name, facts)) return;
    this.attempt(name, facts, "compare it with the task of its id", () => {
      const resend = this.rejections.dropResend(name, id);
      if (resend === "other")
        this.refuse(name, id, "ErrTaskExists", `a task ${JSON.stringify(id)} is there already`);
      else if (resend === "unsure") this.unsettled.askAgain(name, facts);
      else this.duplicates.delete(name);
    });
  }

  private refuse(
    name: string,
    id: string | undefined,
    code: string,
    reason: string,
    offset?: number,
  ): void {
    const path = pathIn(this.trays.inbox, name);
    const raw = name.includes("\ufffd")
      ? this.trays.storage.rawName(this.trays.inbox, name)
      : undefined;
    const facts = this.trays.storage.look(
      raw === undefined ? path : Buffer.concat([Buffer.from(`${this.trays.inbox}/`), raw]),
    );
    this.unsettled.forget(name);
    this.duplicates.delete(name);
    if (facts === undefined || this.hopeless.isLetBe(name, facts)) return;
    this.attempt(name, facts, "move it to failed/", () =>
      this.rejections.refuse({
        name: raw ?? name,
        id,
        code,
        reason,
        isIdTaken:
          code === "ErrTaskExists" ||
          (id !== undefined &&
            (this.ids.isTaken(id) !== false || this.backlog.get(id) !== undefined)),
        ...(offset === undefined ? {} : { offset }),
      }),
    );
  }

  /** A step that fails now is tried again after a while. */
  private attempt(name: string, facts: FileFacts, what: string, step: () => void): void {
    try {
      step();
    } catch (error) {
      const why = `cannot ${what}: ${messageOf(error)}`;
      this.setAside(name, facts, new Error(why, { cause: error }));
    }
  }
}

/** What makes all of a small batch unreadable; a large one shows it line by line. */
function faultOfBatch(bytes: Buffer | undefined): string | undefined {
  return bytes?.includes(0) === true
    ? "the batch holds NUL bytes; if it is UTF-16 or UTF-32, save it as UTF-8"
    : undefined;
}
