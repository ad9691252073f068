/** Claims what this worker is to run: what it was offered and what it found, as far as slots, disk and `control.json` allow. */
import { decodeTask } from "../codec/task-codec.ts";
import { UNSETTLED_MAX } from "../core/limits.ts";
import { parseName } from "../core/names.ts";
import { backoffMs, retryPolicyOf } from "../core/outcome.ts";
import type { Task } from "../core/task.ts";
import { DiskRoom } from "../host/disk-room.ts";
import { say } from "../host/say.ts";
import { claimReady } from "../mailbox/claim.ts";
import { readIfThere } from "../mailbox/steps.ts";
import { pathIn } from "../mailbox/trays.ts";
import { readAttempt } from "./attempt.ts";
import type { AttemptJournal } from "./attempt-journal.ts";
import type { DiskPause } from "./disk-pause.ts";
import { Gate } from "./gate.ts";
import type { ProgressReport } from "./progress-report.ts";
import { type ReadyFile, ReadyQueue } from "./ready-queue.ts";
import { RoomWatch } from "./room-watch.ts";
import type { Attempt, AttemptTools } from "./runner.ts";

/** What a worker process is called, and how much it runs. */
export interface WorkerSelf {
  id: string;
  slots: number;
  /** Begins every lease of this process. */
  ownerPrefix: string;
  /** @param isBeside others run in this process */
  newOwner: (isBeside: boolean) => string;
  /** Its document in `workers/`, which the heartbeat touches. */
  workerFile: string;
  /** Whether there is a supervisor that offers it what it is to claim. */
  isSupervised: () => boolean;
}

export interface ClaimerParts {
  journal: AttemptJournal;
  report: ProgressReport;
  pause: DiskPause;
  /** There is something to claim, or room for it. */
  wake: () => void;
}

/** What the worker has in hand. */
export interface InHand {
  running: number;
  /** What has run and is not settled yet. */
  unsettled: number;
}

export class Claimer {
  private readonly self: WorkerSelf;
  private readonly tools: AttemptTools;
  private readonly p: ClaimerParts;
  private readonly queue: ReadyQueue;
  private readonly gate: Gate;
  private readonly room: RoomWatch;
  /** How often in a row the disk or the machine refused each of these tasks. */
  private readonly hindered = new Map<string, number>();

  constructor(self: WorkerSelf, tools: AttemptTools, parts: ClaimerParts) {
    const { tree, trays, settings } = tools;
    this.self = self;
    this.tools = tools;
    this.p = parts;
    this.queue = new ReadyQueue(trays, settings.retry.backoff_max_ms, parts.wake);
    this.gate = new Gate(tree.controlState, self.id, self.slots);
    const room = new DiskRoom(tree, settings.free_bytes_min);
    this.room = new RoomWatch(room, trays.clock, parts.wake);
  }

  /** Files that are to be claimed. */
  get queuedCount(): number {
    return this.queue.size;
  }

  get hasRoom(): boolean {
    return this.room.hasRoom;
  }

  offer(files: readonly string[]): void {
    for (const file of files) this.queue.add(file, true);
    this.p.wake();
  }

  /** Looks for accepted tasks by itself: without a supervisor, or in case its hints were lost. */
  lookAround(): void {
    if (!this.tools.settings.mailbox_enabled) return;
    try {
      this.queue.lookAround();
    } catch (error) {
      this.p.pause.begin("look around", error);
    }
  }

  /** @returns what was claimed and read, and is to be started */
  claim({ running, unsettled }: InHand): Attempt[] {
    const claimed: Attempt[] = [];
    if (this.queue.size === 0) return claimed;
    const free = this.gate.slots() - running;
    if (unsettled >= UNSETTLED_MAX || this.p.pause.isOn || !this.room.hasRoom) return claimed;
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
        this.p.pause.begin(`claim ${next.file}`, error);
        this.postpone(next.file);
        break;
      }
      this.queue.drop();
      if (attempt === undefined) {
        this.p.report.noteDone(next.file);
        continue;
      }
      if (unsettled === 0) this.p.pause.shorten();
      claimed.push(attempt);
    }
    return claimed;
  }

  /**
   * Programs that a run may start at once: the slots that other attempts leave, with its own, which it keeps while more runs than
   * may; 0 while paused or short of room.
   */
  roomForPrograms(running: number): number {
    return this.gate.isClosed || !this.room.hasRoom
      ? 0
      : Math.max(1, this.gate.slots() - running + 1);
  }

  /** No attempt is used up while the disk refuses a task or batch, or the machine a run, so that its number does not tell how long to wait. */
  backOffHindered({ outcome, subject }: Attempt): void {
    if (outcome?.kind !== "deferred" || outcome.isHindered !== true)
      this.hindered.delete(subject.task_id);
    else outcome.delayMs = this.hinderedDelayMs(subject.task_id);
  }

  close(): void {
    this.queue.close();
    this.room.close();
  }

  /** The disk may refuse this one alone: all others go before it. */
  private postpone(file: string): void {
    const delayMs = this.hinderedDelayMs(parseName(file)?.id ?? file);
    this.queue.postpone(delayMs);
    this.p.report.noteDone(file);
    this.p.report.noteReturned({ file, delayMs });
  }

  private hinderedDelayMs(id: string): number {
    const { settings, trays } = this.tools;
    const tries = (this.hindered.get(id) ?? 0) + 1;
    this.hindered.set(id, tries);
    return backoffMs(tries, retryPolicyOf(settings, undefined), trays.clock.random());
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
    this.p.journal.noteClaimed(attempt);
    return attempt;
  }

  /**
   * The last run of a task whose worker died is for a process that it does not share, which the supervisor starts. What it wants
   * us to have it offers.
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

/** The task, or undefined when the bytes hold none: the worker that claims it reports that. */
function decodeIfTask(bytes: Buffer, id: string): Task | undefined {
  try {
    return decodeTask(bytes, id).task;
  } catch {
    return undefined;
  }
}
