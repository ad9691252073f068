/** Claims the tasks that this worker runs, both offered and found ones, as far as slots, disk and `control.json` allow. */
import { decodeTask } from "../codec/task-codec.ts";
import { messageOf } from "../core/errors.ts";
import { UNSETTLED_MAX } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import { backoffMs, deferred, retryPolicyOf } from "../core/outcome.ts";
import type { Task } from "../core/task.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { say } from "../host/say.ts";
import { claimReady } from "../mailbox/claim/claim.ts";
import { readIfThere } from "../mailbox/files/steps.ts";
import { pathIn } from "../mailbox/files/trays.ts";
import { readAttempt } from "./attempt.ts";
import type { AttemptJournal } from "./attempt-journal.ts";
import type { DiskPause } from "./disk-pause.ts";
import { Gate } from "./gate.ts";
import type { ProgressReport } from "./progress-report.ts";
import { Rates, rateHold } from "./rates.ts";
import { type ReadyFile, ReadyQueue } from "./ready-queue.ts";
import { RefusalCounts } from "./refusal-counts.ts";
import { RoomWatch } from "./room-watch.ts";
import type { Attempt, AttemptTools } from "./runner.ts";

/** The identity of a worker process, and its number of slots. */
export interface WorkerSelf {
  id: string;
  slots: number;
  /** The prefix of the owner in every lease of this process. */
  ownerPrefix: string;
  /** @param isBeside other attempts run in this process */
  newOwner: (isBeside: boolean) => string;
  /** Its document in `workers/`, which the heartbeat touches. */
  workerFile: string;
  /** Whether a supervisor offers tasks to this worker. */
  isSupervised: () => boolean;
}

export interface ClaimerParts {
  journal: AttemptJournal;
  report: ProgressReport;
  pause: DiskPause;
  /** Called when there may be something to claim, or room for it. */
  wake: () => void;
}

/** The attempts that the worker holds. */
export interface InHand {
  running: number;
  /** Attempts that have run and are not settled yet. */
  unsettled: number;
}

export class Claimer {
  private readonly deps: ClaimerParts;
  private readonly queue: ReadyQueue;
  private readonly gate: Gate;
  private readonly room: RoomWatch;
  private readonly rates: Rates;
  private readonly refusals = new RefusalCounts();

  constructor(
    private readonly self: WorkerSelf,
    private readonly tools: AttemptTools,
    parts: ClaimerParts,
  ) {
    const { tree, trays, settings } = tools;
    this.deps = parts;
    this.queue = new ReadyQueue(trays, settings.retry.backoff_max_ms, parts.wake);
    this.gate = new Gate(tree.controlState, self.id, self.slots);
    this.rates = new Rates(tree.limits, settings, trays.durability === "power");
    const room = new DiskRoom(tree, settings.free_bytes_min);
    this.room = new RoomWatch(room, trays.clock, parts.wake);
  }

  /** How many files wait to be claimed. */
  get queuedCount(): number {
    return this.queue.size;
  }

  get hasRoom(): boolean {
    return this.room.hasRoom;
  }

  offer(files: readonly string[]): void {
    for (const file of files) this.queue.add(file, true);
    this.deps.wake();
  }

  /** Looks for accepted tasks in the directory, because there may be no supervisor, or its offers may be lost. */
  lookAround(): void {
    if (!this.tools.settings.mailbox_enabled) return;
    try {
      this.queue.lookAround(this.self.isSupervised());
    } catch (error) {
      this.deps.pause.begin("look around", error);
    }
  }

  /** @returns the attempts that were claimed and read. The caller starts them */
  claim({ running, unsettled }: InHand): Attempt[] {
    const claimed: Attempt[] = [];
    if (this.queue.size === 0) return claimed;
    const free = this.gate.slots() - running;
    if (unsettled >= UNSETTLED_MAX || this.deps.pause.isOn || !this.room.hasRoom) return claimed;
    const { isPaused } = this.gate;
    if (isPaused) this.queue.bringForward((file) => this.gate.mayBegin(file));
    while (claimed.length < free) {
      const next = this.queue.first;
      if (next === undefined || (isPaused && !this.gate.mayBegin(next.file))) break;
      let attempt: Attempt | undefined;
      try {
        if (this.isForOneAlone(next)) {
          this.queue.leaveToOthers(next.file);
          this.queue.drop();
          continue;
        }
        attempt = this.claimOne(next, running + claimed.length > 0);
      } catch (error) {
        this.deps.pause.begin(`claim ${next.file}`, error);
        this.postpone(next.file);
        break;
      }
      this.queue.drop();
      if (attempt === undefined) {
        this.deps.report.noteDone(next.file);
        continue;
      }
      if (unsettled === 0) this.deps.pause.shorten();
      claimed.push(attempt);
    }
    return claimed;
  }

  /**
   * How many programs one run may start at once: its own slot and the free ones. A run keeps its own slot even when too many
   * attempts run. 0 while paused or short of room.
   */
  roomForPrograms(running: number): number {
    return this.gate.isClosed || !this.room.hasRoom
      ? 0
      : Math.max(1, this.gate.slots() - running + 1);
  }

  /**
   * Sets the delay of a task that the disk or the machine refused. Such a refusal uses up no attempt, so the attempt number cannot
   * set the delay.
   */
  backOffHindered({ outcome, subject }: Attempt): void {
    if (outcome?.kind !== "deferred" || outcome.isHindered !== true)
      this.refusals.forget(subject.task_id);
    else outcome.delayMs = this.hinderedDelayMs(subject.task_id);
  }

  close(): void {
    this.queue.close();
    this.room.close();
  }

  /** Puts a file behind all others, because the disk may refuse only this one. */
  private postpone(file: string): void {
    const delayMs = this.hinderedDelayMs(parseName(file)?.id ?? file);
    this.queue.postpone(delayMs);
    this.deps.report.noteDone(file);
    this.deps.report.noteReturned({ file, delayMs });
  }

  private hinderedDelayMs(id: string): number {
    const { settings, trays } = this.tools;
    return backoffMs(
      this.refusals.add(id),
      retryPolicyOf(settings, undefined),
      trays.clock.random(),
    );
  }

  private claimOne({ file, isOffered }: ReadyFile, isBeside: boolean): Attempt | undefined {
    const ready = parseName(file);
    if (ready === undefined || ready.stage !== "ready") return undefined;
    const claim = claimReady(this.tools.trays, ready, this.self.newOwner(isBeside));
    if (claim === undefined) return undefined;
    const attempt = readAttempt(this.tools, claim, file, isOffered);
    if (attempt.unfitReason !== undefined) {
      this.queue.leaveToOthers(file);
      say(`${ready.id} is left to workers with other settings: ${attempt.unfitReason}`);
    }
    this.chargeRates(attempt);
    this.deps.journal.noteClaimed(attempt);
    return attempt;
  }

  /** Charges the start to the rates before it is reported or made. If the process dies in between, the charge stays. */
  private chargeRates(attempt: Attempt): void {
    const task = attempt.decoded?.task;
    if (task === undefined || attempt.outcome !== undefined) return;
    if (task.group === undefined && task.limits === undefined) return;
    try {
      const charged = this.rates.charge(task, this.gate.limitChanges);
      if (charged.may) {
        if (charged.rates !== undefined) attempt.rates = charged.rates;
        return;
      }
      const { limit, waitMs } = charged;
      const message = `the rate of limit ${limit} is used up`;
      attempt.outcome = { kind: "deferred", message, delayMs: waitMs, hold: rateHold(limit) };
      attempt.isUnbegun = true;
    } catch (error) {
      attempt.outcome = deferred(`cannot charge the rate of its limits: ${messageOf(error)}`);
      attempt.isUnbegun = true;
    }
  }

  /**
   * Whether this may be the last run of a task whose worker died. That run needs a process that it does not share, which the
   * supervisor starts. If this worker should run the task, the supervisor offers it.
   */
  private isForOneAlone({ file, isOffered }: ReadyFile): boolean {
    const { slots, isSupervised } = this.self;
    const { trays, settings } = this.tools;
    if (isOffered || slots === 1 || !isSupervised()) return false;
    const name = parseName(file);
    if (name === undefined || name.attempt === 1 || name.isBatch === true) return false;
    const bytes = readIfThere(trays, pathIn(trays.processing, file));
    if (bytes === undefined) return false;
    return name.attempt >= retryPolicyOf(settings, decodeIfTask(bytes, name.id)).maxAttempts;
  }
}

/** The task; undefined when the bytes hold none. The worker that claims the file reports that. */
function decodeIfTask(bytes: Buffer, id: string): Task | undefined {
  try {
    return decodeTask(bytes, id).task;
  } catch {
    return undefined;
  }
}
