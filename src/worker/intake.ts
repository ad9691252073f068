/** The tasks that a worker may claim now, both offered and found ones, as far as slots, disk and `control.json` allow. */
import { decodeTask } from "../codec/task-codec.ts";
import { UNSETTLED_MAX } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import { backoffMs, retryPolicyOf } from "../core/outcome.ts";
import { type ControlDocument, controlOf, INITIAL_CONTROL } from "../core/saved-documents.ts";
import type { Task } from "../core/task.ts";
import type { LimitChanges } from "../core/task-limits.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { readDocument } from "../host/documents.ts";
import { statOf } from "../host/regular-file.ts";
import { say } from "../host/say.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { readIfThere } from "../mailbox/files/steps.ts";
import { pathIn } from "../mailbox/files/trays.ts";
import { claimAttempt, noteClaimed } from "./attempt.ts";
import { type DiskPause, RoomWatch } from "./disk-pause.ts";
import type { ProgressReport } from "./progress-report.ts";
import { chargeStart, Rates } from "./rates.ts";
import { type ReadyFile, ReadyQueue } from "./ready-queue.ts";
import type { Attempt, AttemptTools } from "./runner.ts";
import type { WorkerSelf } from "./worker-document.ts";

export class Intake {
  private readonly queue: ReadyQueue;
  private readonly control: ControlView;
  private readonly room: RoomWatch;
  private readonly rates: Rates;
  private readonly refusals = new RefusalCounts();

  /** @param wake called when there may be something to claim, or room for it */
  constructor(
    private readonly self: WorkerSelf,
    private readonly tools: AttemptTools,
    private readonly telemetry: Telemetry,
    private readonly pause: DiskPause,
    private readonly report: ProgressReport,
    private readonly wake: () => void,
  ) {
    const { tree, trays, settings } = tools;
    this.queue = new ReadyQueue(trays, settings.retry.backoff_max_ms, wake);
    this.control = new ControlView(tree.controlState, self.id, self.slots);
    this.rates = new Rates(tree.limits, settings, trays.durability === "power");
    this.room = new RoomWatch(new DiskRoom(tree, settings.free_bytes_min), trays.clock, wake);
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
    this.wake();
  }

  /** Looks for accepted tasks in the directory, because there may be no supervisor, or its offers may be lost. */
  lookAround(): void {
    if (!this.tools.settings.mailbox_enabled) return;
    try {
      this.queue.lookAround(this.self.isSupervised());
    } catch (error) {
      this.pause.begin("look around", error);
    }
  }

  /**
   * @param unsettled attempts that have run and are not settled yet
   * @returns the attempts that were claimed and read. The caller starts them
   */
  claim(running: number, unsettled: number): Attempt[] {
    const claimed: Attempt[] = [];
    if (this.queue.size === 0) return claimed;
    const free = this.control.slots() - running;
    if (unsettled >= UNSETTLED_MAX || this.pause.isOn || !this.room.hasRoom) return claimed;
    const { isPaused } = this.control;
    if (isPaused) this.queue.bringForward((file) => this.control.mayBegin(file));
    while (claimed.length < free) {
      const next = this.queue.first;
      if (next === undefined || (isPaused && !this.control.mayBegin(next.file))) break;
      let attempt: Attempt | undefined;
      try {
        if (this.isForOneAlone(next)) {
          this.queue.leaveToOthers(next.file);
          this.queue.drop();
          continue;
        }
        attempt = this.claimOne(next, running + claimed.length > 0);
      } catch (error) {
        this.pause.begin(`claim ${next.file}`, error);
        this.postpone(next.file);
        break;
      }
      this.queue.drop();
      if (attempt === undefined) {
        this.report.note(next.file);
        continue;
      }
      if (unsettled === 0) this.pause.shorten();
      claimed.push(attempt);
    }
    return claimed;
  }

  /**
   * How many programs one run may start at once: its own slot and the free ones. A run keeps its own slot even when too many
   * attempts run. 0 while paused or short of room.
   */
  roomForPrograms(running: number): number {
    return this.control.isClosed || !this.room.hasRoom
      ? 0
      : Math.max(1, this.control.slots() - running + 1);
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
    this.report.note(file, { returned: { file, delayMs } });
  }

  private hinderedDelayMs(id: string): number {
    const { settings, trays } = this.tools;
    return backoffMs(
      this.refusals.add(id),
      retryPolicyOf(settings, undefined),
      trays.clock.random(),
    );
  }

  private claimOne(ready: ReadyFile, isBeside: boolean): Attempt | undefined {
    const attempt = claimAttempt(this.tools, ready, this.self.newOwner(isBeside));
    if (attempt === undefined) return undefined;
    if (attempt.unfitReason !== undefined) {
      const { task_id: id } = attempt.subject;
      this.queue.leaveToOthers(ready.file);
      say(`${id} is left to workers with other settings: ${attempt.unfitReason}`);
    }
    // A charge comes before the start is reported or made. If the process dies in between, the charge stays.
    if (isLimited(attempt)) chargeStart(this.rates, attempt, this.control.limitChanges);
    noteClaimed(this.telemetry, attempt);
    return attempt;
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

/** Whether limits may hold back the start of this attempt. */
function isLimited({ decoded, outcome }: Attempt): boolean {
  const task = outcome === undefined ? decoded?.task : undefined;
  return task?.group !== undefined || task?.limits !== undefined;
}

/** The task; undefined when the bytes hold none. The worker that claims the file reports that. */
function decodeIfTask(bytes: Buffer, id: string): Task | undefined {
  try {
    return decodeTask(bytes, id).task;
  } catch {
    return undefined;
  }
}

/** Reads control.json before each claim. An unchanged file costs one stat call. */
export class ControlView {
  private seen = "";
  private control: ControlDocument = INITIAL_CONTROL;

  constructor(
    private readonly path: string,
    private readonly workerId: string,
    private readonly ownSlots: number,
  ) {}

  /** How many attempts may run in this process now. During a pause, only tasks that `mayBegin` allows may start. */
  slots(): number {
    this.refresh();
    return Math.min(this.control.slots[this.workerId] ?? this.ownSlots, this.ownSlots * 1024);
  }

  /** The changes that commands made to groups and limits, as the last call of `slots` found them. */
  get limitChanges(): LimitChanges {
    return this.control.limit_changes;
  }

  /** Whether the last call of `slots` found a pause. */
  get isPaused(): boolean {
    return this.control.paused;
  }

  /** Whether the ready task under this name was launched before the pause, and so may still begin. */
  mayBegin(file: string): boolean {
    const name = parseName(file);
    return name?.attempt === 1 && this.control.launched.includes(name.id);
  }

  /** Whether nothing may start anywhere, not even inside a run that has begun. */
  get isClosed(): boolean {
    this.refresh();
    return this.control.paused || this.control.max_workers === 0;
  }

  private refresh(): void {
    try {
      const stats = statOf(this.path);
      const key = stats === undefined ? "none" : `${stats.ino}.${stats.mtimeMs}.${stats.size}`;
      if (key === this.seen) return;
      const control = stats === undefined ? {} : readDocument<Record<string, unknown>>(this.path);
      if (control === undefined) return;
      this.control = controlOf(control);
      this.seen = key;
    } catch {
      // The file was replaced while we read it, broken by hand, or the disk cannot be read now: the last valid state still applies.
    }
  }
}

/** Another worker may have run a task since, so the tasks that were refused longest ago are forgotten beyond this number. */
const TASKS_MAX = 4096;

/** Counts how often in a row the disk or the machine refused each task. */
export class RefusalCounts {
  private readonly counts = new Map<string, number>();

  constructor(private readonly max = TASKS_MAX) {}

  /** @returns how often in a row the task was refused, with this time */
  add(id: string): number {
    const count = (this.counts.get(id) ?? 0) + 1;
    this.counts.delete(id);
    for (const oldest of this.counts.keys()) {
      if (this.counts.size < this.max) break;
      this.counts.delete(oldest);
    }
    this.counts.set(id, count);
    return count;
  }

  /** The task was not refused. */
  forget(id: string): void {
    this.counts.delete(id);
  }
}
