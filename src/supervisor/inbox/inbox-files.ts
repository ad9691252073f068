/**
 * Acts on the verdict about an inbox file: it takes the task into the backlog, waits while the file is being written, or has the
 * file refused. A file that cannot be read or moved is retried with a growing delay, so that other files do not wait for it.
 */
import { type DecodedTask, decodeTask } from "../../codec/task-codec.ts";
import type { Backlog } from "../../core/backlog.ts";
import type { Dependency } from "../../core/dependencies.ts";
import { messageOf, systemCode } from "../../core/errors.ts";
import { checkExec } from "../../core/matching.ts";
import type { Task } from "../../core/task.ts";
import { nearGroup } from "../../core/task-limits.ts";
import { waitingBatch, waitingTask } from "../../core/waiting-task.ts";
import { dropStagedLink, SECOND_LINK } from "../../mailbox/files/dropped-file.ts";
import type { FileFacts } from "../../mailbox/files/storage.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import { isBeingRetried } from "../../mailbox/find/locate.ts";
import { inboxPath, type Refusal } from "../../mailbox/settle/quarantine.ts";
import type { KeyedTask } from "../../mailbox/submit/keys.ts";
import type { Environment } from "../environment/environment.ts";
import { FieldNotes } from "./field-notes.ts";
import { type DropRules, type Fault, inspectFile, type Seen, type When } from "./inspect-file.ts";
import type { KeyAnswer } from "./key-holders.ts";
import { IncompleteFiles, UnreadableFiles } from "./pending-files.ts";

export type ScannerEnvironment = Pick<
  Environment,
  "trays" | "settings" | "alerts" | "facts" | "wake"
>;

/** Answers questions about ids. */
export interface IdRegistry {
  /** Whether a task with this id, ignoring case, is in `processing/` or has settled; "unsure": ask again soon. */
  isTaken(id: string): boolean | "unsure";
  /** Whether results of an earlier batch are at the place where this id's results would be. */
  hasLeftResults(id: string): boolean;
}

/** Handles files that are not accepted. */
export interface FileRejections {
  /** Moves the file to `failed/`. */
  refuse(refusal: Refusal): void;
  /** Drops the file if it holds the same task as the one that has its id. "unsure": ask again. */
  dropResend(name: string, id: string): "dropped" | "other" | "unsure";
}

/** Decides which of the tasks with one key runs. */
export interface KeyJudge {
  judge(task: KeyedTask): KeyAnswer;
  /** How many files wait for its answer, or for another look after it. */
  readonly unsureCount: number;
  /** The ids that have an answer, until their files are looked at. */
  answered(): readonly string[];
  /** Drops the answer for this id. */
  forget(id: string): void;
}

/** The questions of a scanner about tasks. */
export interface TaskQuestions {
  ids: IdRegistry;
  keys: KeyJudge;
  /** Whether a dependency has completed, or ended if that is enough. */
  isMet: (dependency: Dependency) => boolean;
}

export class InboxFiles {
  readonly incomplete: IncompleteFiles;
  readonly unreadable: UnreadableFiles;
  readonly fieldNotes: FieldNotes;
  /** The number of the scan in progress: an accepted file counts as seen by it. */
  scanCount = 0;
  private readonly trays: Trays;
  private readonly ids: IdRegistry;
  private readonly keys: KeyJudge;
  private readonly isMet: TaskQuestions["isMet"];
  private readonly rules: DropRules<DecodedTask>;
  /** Files with a key that were found before all files had been looked at once. They are judged after that, in the order of their arrival. */
  private early: Map<string, { createdAt: number; ms: number }> | undefined = new Map();
  /** Names whose id was found in use when they were about to be accepted. */
  private readonly duplicates = new Set<string>();

  constructor(
    private readonly env: ScannerEnvironment,
    private readonly backlog: Backlog,
    private readonly rejections: FileRejections,
    { ids, keys, isMet }: TaskQuestions,
  ) {
    const { trays, settings } = env;
    const decode = (bytes: Buffer, id: string, path: string): DecodedTask => {
      const decoded = decodeTask(bytes, id, path);
      checkExec(decoded.task, settings.agents, { id, path });
      return decoded;
    };
    this.trays = trays;
    this.ids = ids;
    this.keys = keys;
    this.isMet = isMet;
    this.rules = { uids: settings.uids, batches: settings.batch_bytes_max, decode };
    this.incomplete = new IncompleteFiles(trays.clock, settings.settle_ms);
    this.unreadable = new UnreadableFiles(trays.clock);
    this.fieldNotes = new FieldNotes(env.alerts, trays.clock);
  }

  /** Looks at one file. An error with this file does not affect other files. */
  look(name: string): void {
    this.lookAt(name);
    if (this.keys.unsureCount > 0) this.keys.forget(idOf(name));
  }

  private lookAt(name: string): void {
    const { unreadable } = this;
    try {
      const now = unreadable.has(name) ? this.factsOf(name) : undefined;
      if (now === undefined || !unreadable.isLetBe(name, now)) this.judge(name);
    } catch (error) {
      this.incomplete.forget(name);
      let facts: FileFacts | undefined;
      try {
        facts = this.factsOf(name);
      } catch (refusal) {
        if (systemCode(refusal) === "") throw refusal;
        // The inbox itself cannot be searched. A later scan finds the file again.
        this.report("", refusal);
        return;
      }
      if (facts === undefined) this.forgetTask(name);
      else if (!unreadable.isLetBe(name, facts)) this.setAside(name, facts, error);
    }
  }

  /** Handles a file whose id is in use: waits a moment, because the sender may take the file back, then refuses it. */
  recheckDuplicate(name: string): void {
    this.duplicates.add(name);
    this.look(name);
  }

  /** Forgets the files that are gone. */
  forgetGone(): void {
    for (const files of [this.incomplete, this.unreadable])
      for (const name of files.names()) if (this.factsOf(name) === undefined) files.forget(name);
    if (this.keys.unsureCount === 0) return;
    for (const id of this.keys.answered())
      if (this.factsOf(`${id}.json`) === undefined) this.keys.forget(id);
  }

  report(name: string, error: unknown): void {
    const text = `inbox/${name}: ${messageOf(error)}`;
    this.env.alerts.report(`inbox:${systemCode(error)}:${name}`, text);
  }

  private factsOf(name: string): FileFacts | undefined {
    return this.trays.storage.look(pathIn(this.trays.inbox, name));
  }

  private judge(name: string): void {
    const seen = inspectFile(this.trays, name, this.rules);
    if (seen.is === "ignored") return;
    if (seen.is === "misnamed") {
      this.refuse(name, undefined, seen);
      return;
    }
    // A file whose id is in use is refused, whatever it holds.
    if (this.isDuplicate(name, seen)) return;
    if (seen.is === "rejected") this.backlog.remove(seen.id);
    if (!this.isDue(name, seen.facts, seen.when)) return;
    if (seen.is === "accepted") this.admit(name, seen, seen.value?.task);
    else if (seen.is === "linked") this.settleSecondLink(name, seen);
    else this.refuse(name, seen.id, seen);
  }

  /** True when the id is in use: the file then waits, or is dropped or refused. */
  private isDuplicate(name: string, { id, isBatch, facts }: Seen): boolean {
    const known = this.backlog.get(id);
    if (known !== undefined && known.file !== name) {
      if (!this.incomplete.isQuiet(name, facts)) return true;
      // The accepted task may be the same one: it was sent again, or put back by a process that died while doing so.
      if (known.tray === "processing") this.refuseTaken(name, id, facts);
      else this.refuseSecond(name, id, `a task ${JSON.stringify(known.id)} waits already`);
      return true;
    }
    if (!this.duplicates.has(name)) return false;
    const isTaken = this.ids.isTaken(id) || (isBatch && this.ids.hasLeftResults(id));
    if (isTaken === "unsure") this.incomplete.askAgain(name, facts);
    else if (!isTaken) this.duplicates.delete(name);
    else if (this.incomplete.isQuiet(name, facts)) this.refuseTaken(name, id, facts);
    return isTaken !== false;
  }

  /** Whether the verdict can be used now; otherwise the file is looked at again. */
  private isDue(name: string, facts: FileFacts, when: When): boolean {
    if (when === "now") return true;
    const writer = when === "closed" ? this.incomplete.hasWriter(name, facts) : true;
    if (writer === "unsure") this.incomplete.askAgain(name, facts);
    return writer === true ? this.incomplete.isQuiet(name, facts) : writer === false;
  }

  /** @param task undefined for a batch */
  private admit(name: string, { id, facts }: Seen, task: Task | undefined): void {
    const { clock } = this.trays;
    this.incomplete.forget(name);
    if (task?.group !== undefined) this.warnOfGroup(name, task.group);
    if (task?.dedup_key !== undefined && !this.holdsKey(name, id, facts, task)) return;
    const attempt = (task?.attempts ?? 0) + 1;
    const place = { id, file: name, tray: "inbox", attempt, ...this.timesOf(name, facts) } as const;
    const waiting =
      task === undefined
        ? waitingBatch(place)
        : waitingTask(task, place, this.env.settings.agents, this.isMet);
    this.backlog.add(waiting, clock.wallMs(), clock.monotonicMs());
    this.backlog.see(id, name, this.scanCount);
    if (task === undefined) this.fieldNotes.noteBatch(id, pathIn(this.trays.inbox, name));
    else this.fieldNotes.noteTask(id, task);
    this.unreadable.forget(name);
  }

  /** A misspelt group limits nothing, and sends the task to no other machine. */
  private warnOfGroup(name: string, group: string): void {
    const near = nearGroup(group, this.env.settings);
    if (near === undefined) return;
    const text = `${name}: config.yaml has no group ${JSON.stringify(group)}; did it mean ${near}?`;
    this.env.alerts.report(`group:${group}`, text);
  }

  /** Whether the task holds its key, if it has one: of two tasks with one key, the first one runs. */
  private holdsKey(name: string, id: string, facts: FileFacts, task: Task): boolean {
    const { dedup_key: key = "", dedup_window_ms: windowMs = 0 } = task;
    if (key === "") return true;
    if (this.early !== undefined) {
      const createdAt = task.created_at ?? facts.mtimeMs / 1000;
      this.early.set(name, { createdAt, ms: facts.ctimeMs });
      return false;
    }
    if (this.keys.judge({ id, key, windowMs }) === "holds") return true;
    // The task may be in the backlog already, if its file was replaced.
    this.backlog.remove(id);
    return false;
  }

  /** In `processing/` a time in the future means "not before". A dropped file with such a time does not mean that. */
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
      // The file was moved away, or we may not set its time: it may then wait as long as a backoff.
    }
    return { mtimeMs: wallMs, ctimeMs };
  }

  /** Call it when all files were looked at once. @returns the files with a key that were there at the start, the oldest first */
  endEarly(): string[] {
    const early = [...(this.early ?? [])];
    this.early = undefined;
    return early
      .sort(([, a], [, b]) => a.createdAt - b.createdAt || a.ms - b.ms)
      .map(([name]) => name);
  }

  /** Forgets the task that waited under this name, because its file is gone. */
  private forgetTask(name: string): void {
    const id = idOf(name);
    if (this.backlog.get(id)?.file === name) this.backlog.remove(id);
  }

  /** Tries the file again with a growing delay, and reports it once. */
  private setAside(name: string, facts: FileFacts, error: unknown): void {
    if (this.unreadable.note(name, facts, error)) this.report(name, error);
  }

  /** Handles a second link that stays: the staged file of a dead submit is removed, any other file is refused. */
  private settleSecondLink(name: string, { id, facts }: Seen): void {
    const isOurs = dropStagedLink(this.trays, id, facts.ino);
    // A slow sender may have removed the other name since the file was read.
    if (isOurs || this.factsOf(name)?.nlink === 1) {
      this.look(name);
      return;
    }
    const isTaken = isBeingRetried(this.trays, id) ? "unsure" : this.ids.isTaken(id);
    if (isTaken === "unsure") this.incomplete.askAgain(name, facts);
    // A requeue was interrupted between its two steps: the task itself is in processing/, and this is its second name.
    else if (isTaken) this.refuseTaken(name, id, facts);
    else this.refuse(name, id, { reason: SECOND_LINK });
  }

  /** Refuses the file, because a task with this id exists already. */
  private refuseTaken(name: string, id: string, facts: FileFacts): void {
    if (this.unreadable.isLetBe(name, facts)) return;
    this.attempt(name, facts, "compare it with the task of its id", () => {
      const resend = this.rejections.dropResend(name, id);
      if (resend === "other")
        this.refuseSecond(name, id, `a task ${JSON.stringify(id)} is there already`);
      else if (resend === "unsure") this.incomplete.askAgain(name, facts);
      else this.duplicates.delete(name);
    });
  }

  private refuseSecond(name: string, id: string, reason: string): void {
    this.refuse(name, id, { reason }, "ErrTaskExists");
  }

  private refuse(
    name: string,
    id: string | undefined,
    { reason, offset }: Fault,
    code: "ErrInvalidTask" | "ErrTaskExists" = "ErrInvalidTask",
  ): void {
    const facts = this.trays.storage.look(inboxPath(this.trays, name));
    this.incomplete.forget(name);
    this.duplicates.delete(name);
    if (facts === undefined || this.unreadable.isLetBe(name, facts)) return;
    this.attempt(name, facts, "move it to failed/", () => {
      const isIdTaken =
        code === "ErrTaskExists" ||
        (id !== undefined &&
          (this.ids.isTaken(id) !== false || this.backlog.get(id) !== undefined));
      this.rejections.refuse({ name, id, code, reason, offset, isIdTaken });
    });
  }

  /** Runs a step. If it fails, the file is tried again after a while. */
  private attempt(name: string, facts: FileFacts, what: string, step: () => void): void {
    try {
      step();
    } catch (error) {
      const why = `cannot ${what}: ${messageOf(error)}`;
      this.setAside(name, facts, new Error(why, { cause: error }));
    }
  }
}

function idOf(name: string): string {
  return name.replace(/\.(?:nd)?json$/, "");
}
