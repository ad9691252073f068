/**
 * Looks at everything besides the inbox, at intervals: `processing/` of both mailboxes (what must be recovered, what waits there,
 * what other processes do), and the journal.
 */
import { messageOf } from "../core/errors.ts";
import { RECOVER_MS } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import { beatMsOf } from "../core/stall.ts";
import { makeTrays } from "../mailbox/files/trays.ts";
import type { CommandInbox } from "./control/command-inbox.ts";
import type { ControlFile } from "./documents/control-file.ts";
import type { Environment } from "./environment/environment.ts";
import type { JournalReader } from "./environment/journal-reader.ts";
import type { Service, Tick } from "./environment/service.ts";
import type { TaskRecovery } from "./maintenance/task-recovery.ts";
import type { Completions } from "./queue/completions.ts";
import type { Queue } from "./queue/queue.ts";
import type { SlotSharing } from "./queue/slot-sharing.ts";
import type { Watchers } from "./watchers.ts";

export interface PollParts {
  queue: Queue;
  journal: JournalReader;
  completions: Completions;
  slots: SlotSharing;
  watchers: Watchers;
  recovery: Recovery;
}

/** The services that take back the tasks and commands of dead processes. */
export interface Recovery {
  taskRecovery: TaskRecovery;
  commandRecovery: TaskRecovery;
  commands: CommandInbox;
  control: ControlFile;
}

/**
 * How often it looks around when nothing waits or runs (ms). To measure silence it must look each `RECOVER_MS`: after a gap of
 * three times that, it assumes that its own process was asleep, and starts to measure again.
 */
const QUIET_MS = 2000;
/** After a look at `processing/`, work that is due within this time is done as well (ms). */
const EARLY_MS = 200;
/** Pause between two pieces of a journal that has several new pieces (ms). */
const JOURNAL_AGAIN_MS = 50;

export class Poll implements Service {
  private readonly deps: PollParts;
  private lookAtMs = 0;
  private journalAtMs = 0;
  /** When dependencies are checked again. A change in `processing/` is no reason to check, because the journal reports completed tasks. */
  private recheckAtMs = 0;
  private isListingWanted = true;
  /** Whether `processing/` had any file at the last look: silence is then measured. */
  private isAnythingProcessed = false;

  constructor(
    private readonly env: Environment,
    parts: PollParts,
  ) {
    this.deps = parts;
    env.facts.on("processing:changed", () => {
      this.isListingWanted = true;
      env.wake();
    });
  }

  private get isOn(): boolean {
    return this.env.settings.mailbox_enabled;
  }

  /** Finds other workers and takes back the tasks of dead processes. Resolves when that is done and the watches have begun. */
  async start(): Promise<void> {
    this.lookAtWorkers();
    await this.recoverAtStart();
    this.deps.watchers.start();
    this.deps.queue.scanner.hint(undefined);
  }

  stop(): void {
    this.deps.watchers.stop();
  }

  /** Takes back the tasks that ended workers have left. Resolves when no step is running. */
  async finish(): Promise<void> {
    const { taskRecovery } = this.deps.recovery;
    if (this.isOn) await taskRecovery.round(taskRecovery.list());
    await taskRecovery.idle();
  }

  /** Closes the journal. */
  close(): void {
    this.deps.journal.close();
  }

  /** Looks again soon, because tasks were handed out. */
  private expectChange(nowMs: number): void {
    this.lookAtMs = Math.min(this.lookAtMs, nowMs + RECOVER_MS);
    this.journalAtMs = Math.min(this.journalAtMs, nowMs + RECOVER_MS);
  }

  nextMs(nowMs: number): number {
    if (this.deps.queue.accepted.count("offered") > 0) this.expectChange(nowMs);
    return Math.min(this.lookAtMs, this.journalAtMs);
  }

  /** Does the looks that are due. After a look at `processing/` it also does those that are due soon. */
  work(tick: Tick): void {
    const { nowMs } = tick;
    const isLookDue = nowMs >= this.lookAtMs || this.isListingWanted;
    if (isLookDue) this.lookAtProcessing(nowMs);
    // Read the journal with each look, so that both are due at one time: waking up costs more than the work.
    if (isLookDue || nowMs >= this.journalAtMs) this.followJournal(nowMs);
    if (isLookDue) tick.dueMs = nowMs + EARLY_MS;
  }

  private async recoverAtStart(): Promise<void> {
    const { commandRecovery, control, commands, taskRecovery } = this.deps.recovery;
    const files = commandRecovery.list();
    if (files !== undefined) {
      const nonces = new Set(files.map((file) => parseName(file)?.submission));
      control.keepApplied((nonce) => nonces.has(nonce));
      // Recover commands first: an unfinished cancel continues with a lease that task recovery would give back.
      const commanded = commandRecovery.round(files, true);
      await commanded;
      for (const file of files) commands.takeReady(file);
    }
    if (this.isOn) await taskRecovery.round(taskRecovery.list(), true);
  }

  private lookAtProcessing(nowMs: number): void {
    const { wake } = this.env;
    const { commandRecovery, commands } = this.deps.recovery;
    this.lookAtMs = nowMs + RECOVER_MS;
    this.isListingWanted = false;
    this.mendTrays();
    // Also while the task mailbox is off: an earlier supervisor may have left workers, and one of them may hang.
    this.lookAtWorkers();
    const files = this.isOn ? this.lookAtTasks(nowMs) : [];
    const controlFiles = commandRecovery.list();
    this.isAnythingProcessed = files?.length !== 0 || controlFiles?.length !== 0;
    this.lookAtMs = nowMs + this.pauseMs();
    if (controlFiles !== undefined && controlFiles.length > 0) {
      void commandRecovery.round(controlFiles).then(wake);
      for (const file of controlFiles) if (file.endsWith("~ready.json")) commands.takeReady(file);
    }
    this.recheck(nowMs);
  }

  /**
   * Checks dependencies in case an event was lost. It is limited, because workers that are not our children may cause a look for
   * each of their moves.
   */
  private recheck(nowMs: number): void {
    if (nowMs < this.recheckAtMs) return;
    this.recheckAtMs = this.lookAtMs;
    this.deps.completions.recheckDependencies();
  }

  private lookAtWorkers(): void {
    const { pool } = this.deps.queue;
    pool.survey();
    pool.ensure();
    this.deps.slots.share();
  }

  /** @returns the names in `processing/`; undefined when it cannot be listed: nothing is then concluded */
  private lookAtTasks(nowMs: number): string[] | undefined {
    const { watchers } = this.deps;
    const { pool, scanner, processing } = this.deps.queue;
    const { taskRecovery } = this.deps.recovery;
    watchers.watchProcessing(pool.workers.hasOthers);
    scanner.sweepDue(nowMs);
    const files = taskRecovery.list();
    if (files === undefined) return undefined;
    processing.take(files);
    this.env.facts.emit("processing:listed", files);
    const round = taskRecovery.round(files);
    if (files.length > 0) void round.then(this.env.wake);
    return files;
  }

  private followJournal(nowMs: number): void {
    this.journalAtMs = nowMs + (this.deps.journal.read() ? JOURNAL_AGAIN_MS : this.pauseMs());
  }

  /** Pause until the next look (ms). It is longer while nothing waits or runs. */
  private pauseMs(): number {
    const { accepted, backlog, pool } = this.deps.queue;
    const isQuiet =
      backlog.size === 0 &&
      accepted.size === 0 &&
      !this.isAnythingProcessed &&
      !pool.workers.hasOthers;
    const { settings } = this.env;
    return beatMsOf(settings, Math.min(isQuiet ? QUIET_MS : RECOVER_MS, settings.sweep_ms));
  }

  private mendTrays(): void {
    const { trays, controlTrays, alerts } = this.env;
    const { watchers, queue } = this.deps;
    try {
      if (this.isOn) makeTrays(trays);
      makeTrays(controlTrays);
    } catch (error) {
      alerts.report("trays", messageOf(error));
    }
    if (watchers.rearm()) queue.scanner.restartScan();
  }
}
