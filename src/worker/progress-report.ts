/** Collects a worker's progress and reports it to the supervisor in as few messages as possible. */
import type { ReturnedNotice, SettledNotice, ToSupervisor } from "./protocol.ts";

export interface ProgressReportHooks {
  send: (message: ToSupervisor) => void;
  /** Counts the attempts that the worker found itself and runs now. */
  countExtra: () => number;
  /** Counts the attempts that have run and wait for the disk. */
  countUnsettled: () => number;
}

/** A worker with at least this many waiting tasks reports its progress only now and then. */
const REPORT_QUEUE_MIN = 8;
const REPORT_PAUSE_MS = 4;

export class ProgressReport {
  private timer: NodeJS.Timeout | undefined;
  private toldUnsettled = 0;
  private done: string[] = [];
  private settled: SettledNotice[] = [];
  private returned: ReturnedNotice[] = [];

  constructor(private readonly hooks: ProgressReportHooks) {}

  /** Notes that this worker has ended the task that waited under this name, with any result. */
  noteDone(readyFile: string): void {
    this.done.push(readyFile);
  }

  noteSettled(notice: SettledNotice): void {
    this.settled.push(notice);
  }

  noteReturned(notice: ReturnedNotice): void {
    this.returned.push(notice);
  }

  /**
   * Sends the report at once when this worker may need more tasks, otherwise in one message for many tasks.
   * @param queuedCount how many tasks wait here
   */
  tell(queuedCount: number): void {
    if (queuedCount > REPORT_QUEUE_MIN)
      this.timer ??= setTimeout(() => this.tellNow(), REPORT_PAUSE_MS);
    else this.tellNow();
  }

  tellNow(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const unsettled = this.hooks.countUnsettled();
    if (
      this.done.length === 0 &&
      this.settled.length === 0 &&
      this.returned.length === 0 &&
      unsettled === this.toldUnsettled
    )
      return;
    this.toldUnsettled = unsettled;
    this.hooks.send({
      type: "progress",
      done: this.done,
      settled: this.settled,
      returned: this.returned,
      extra: this.hooks.countExtra(),
      unsettled,
    });
    this.done = [];
    this.settled = [];
    this.returned = [];
  }
}
