/**
 * What a supervisor looks at beside the inbox, and when: `processing/` of both mailboxes (what to recover, what waits there,
 * what others do), and the journal.
 */
import type { Backlog } from "../core/backlog.ts";
import { messageOf } from "../core/errors.ts";
import { parseName } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import { makeTrays, type Trays } from "../mailbox/trays.ts";
import type { Alerts } from "./alerts.ts";
import type { Bells } from "./bells.ts";
import type { Commands } from "./commands.ts";
import type { ControlState } from "./control-state.ts";
import type { Intake } from "./intake.ts";
import type { Metrics } from "./metrics.ts";
import type { PlanEngine } from "./plan/plan-engine.ts";
import type { Pool } from "./pool.ts";
import type { Processing } from "./processing.ts";
import type { RecoveryRounds } from "./recovery-rounds.ts";
import type { Selection } from "./selection.ts";
import type { TaskEnds } from "./task-ends.ts";
import { RECOVER_MS } from "./task-recoverer.ts";

export interface LookoutParts {
  /** False when only commands are taken. */
  isOn: boolean;
  settings: Pick<Settings, "sweep_ms">;
  trays: Trays;
  controlTrays: Trays;
  recovery: RecoveryRounds;
  controlRecovery: RecoveryRounds;
  backlog: Backlog;
  intake: Intake;
  selection: Selection;
  processing: Processing;
  pool: Pool;
  plan: PlanEngine;
  taskEnds: TaskEnds;
  commands: Commands;
  control: ControlState;
  metrics: Metrics;
  bells: Bells;
  alerts: Alerts;
  shareSlots: () => void;
  wake: () => void;
}

/**
 * How often it looks around when nothing waits or runs (ms). Who measures silence looks each `RECOVER_MS`: beyond three times that
 * it takes itself for asleep, and begins anew.
 */
const QUIET_MS = 2000;
/** What is due within this time is done with what is due now, when everything is looked at (ms). */
const EARLY_MS = 200;
/** Pause between two pieces of a journal that has more than one (ms). */
const JOURNAL_AGAIN_MS = 50;

export class Lookout {
  private readonly p: LookoutParts;
  private recoverAtMs = 0;
  private journalAtMs = 0;
  private isListingWanted = true;
  /** Whether something lay in `processing/` at the last look, whosever it is: then silence is measured. */
  private isAnythingProcessed = false;

  constructor(parts: LookoutParts) {
    this.p = parts;
  }

  /** The next tick looks at `processing/`. */
  wantListing(): void {
    this.isListingWanted = true;
  }

  /** Work was handed out: nobody stays quiet for long. @param nowMs monotonic */
  expectChange(nowMs: number): void {
    this.recoverAtMs = Math.min(this.recoverAtMs, nowMs + RECOVER_MS);
    this.journalAtMs = Math.min(this.journalAtMs, nowMs + RECOVER_MS);
  }

  /** Monotonic ms at which it has to look again. */
  get nextMs(): number {
    return Math.min(this.recoverAtMs, this.journalAtMs);
  }

  /** Looks at what is due. @returns what is due by then (monotonic ms) is to be done in this tick, too */
  work(nowMs: number): number {
    const isLookDue = nowMs >= this.recoverAtMs || this.isListingWanted;
    if (isLookDue) this.lookAtProcessing(nowMs);
    // With each look, too, so that both are due at one time: each time that we wake costs more than what is done.
    if (isLookDue || nowMs >= this.journalAtMs) this.followJournal(nowMs);
    return isLookDue ? nowMs + EARLY_MS : nowMs;
  }

  /** A bounded piece of what the journal says. @returns true when there is more */
  readJournal(): boolean {
    try {
      const { completedIds, hasMore } = this.p.metrics.read();
      for (const id of completedIds) this.p.taskEnds.noteCompleted(id);
      return hasMore;
    } catch (error) {
      // Tasks run without it: their records say what became of them.
      this.p.alerts.report("journal", `cannot read the journal of events: ${messageOf(error)}`);
      return false;
    }
  }

  /** Takes back what dead supervisors and workers have left. Resolves when that is done. */
  async recoverAtStart(): Promise<void> {
    const { controlRecovery, control, commands, isOn, recovery } = this.p;
    const files = controlRecovery.list();
    if (files !== undefined) {
      const nonces = new Set(files.map((file) => parseName(file)?.submission));
      control.keepApplied((nonce) => nonces.has(nonce));
      // Commands first: a cancel that was under way goes on with the lease that recovery would give back.
      const commanded = controlRecovery.round(files, true);
      for (const file of files) commands.takeReady(file);
      await commanded;
    }
    if (isOn) await recovery.round(recovery.list(), true);
  }

  private lookAtProcessing(nowMs: number): void {
    const { isOn, controlRecovery, commands, taskEnds, wake } = this.p;
    this.recoverAtMs = nowMs + RECOVER_MS;
    this.isListingWanted = false;
    this.mendTrays();
    const files = isOn ? this.lookAtTasks(nowMs) : [];
    const controlFiles = controlRecovery.list();
    this.isAnythingProcessed = files?.length !== 0 || controlFiles?.length !== 0;
    this.recoverAtMs = nowMs + this.pauseMs();
    if (controlFiles !== undefined && controlFiles.length > 0) {
      void controlRecovery.round(controlFiles).then(wake);
      for (const file of controlFiles) if (file.endsWith("~ready.json")) commands.takeReady(file);
    }
    taskEnds.recheckDependencies();
  }

  /** @returns what lies in `processing/`; undefined: nobody can say, and nothing is concluded from it */
  private lookAtTasks(nowMs: number): string[] | undefined {
    const { pool, bells, intake, recovery, processing, plan, wake } = this.p;
    pool.survey();
    pool.ensure();
    this.p.shareSlots();
    bells.watchProcessing(pool.hasOthers);
    intake.sweepDue(nowMs);
    const files = recovery.list();
    if (files === undefined) return undefined;
    processing.take(files);
    plan.survey(files);
    const round = recovery.round(files);
    if (files.length > 0) void round.then(wake);
    return files;
  }

  private followJournal(nowMs: number): void {
    this.journalAtMs = nowMs + (this.readJournal() ? JOURNAL_AGAIN_MS : this.pauseMs());
  }

  /** How long nobody need look around (ms): longer where nothing waits or runs. */
  private pauseMs(): number {
    const { backlog, selection, pool, plan } = this.p;
    const isQuiet =
      backlog.size === 0 &&
      selection.inFlight.size === 0 &&
      !this.isAnythingProcessed &&
      !pool.hasOthers &&
      !plan.isInForce;
    return Math.min(isQuiet ? QUIET_MS : RECOVER_MS, this.p.settings.sweep_ms);
  }

  private mendTrays(): void {
    const { isOn, trays, controlTrays, alerts, bells, intake } = this.p;
    try {
      if (isOn) makeTrays(trays);
      makeTrays(controlTrays);
    } catch (error) {
      alerts.report("trays", messageOf(error));
    }
    if (bells.rearm()) intake.restartScan();
  }
}
