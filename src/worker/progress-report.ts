/** Collects a worker's progress and reports it to the supervisor in as few messages as possible. */
import type { ReturnedNotice, SettledNotice, ToSupervisor } from "./protocol.ts";

/** A worker with at least this many waiting tasks reports its progress only now and then. */
const REPORT_QUEUE_MIN = 8;
const REPORT_PAUSE_MS = 4;

/** The attempts that a worker has in hand when it reports. */
export interface CountsInHand {
  /** Those that the worker found itself and runs now. */
  extra: number;
  /** Those that have run and wait for the disk. */
  unsettled: number;
}

export class ProgressReport {
  private timer: NodeJS.Timeout | undefined;
  private toldUnsettled = 0;
  private done: string[] = [];
  private settled: SettledNotice[] = [];
  private returned: ReturnedNotice[] = [];

  constructor(
    private readonly send: (message: ToSupervisor) => void,
    private readonly count: () => CountsInHand,
  ) {}

  /** Notes that this worker has ended the task that waited under this name, with any result. */
  note(readyFile: string, end: { settled?: SettledNotice; returned?: ReturnedNotice } = {}): void {
    this.done.push(readyFile);
    if (end.settled !== undefined) this.settled.push(end.settled);
    if (end.returned !== undefined) this.returned.push(end.returned);
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
    const { extra, unsettled } = this.count();
    if (
      this.done.length === 0 &&
      this.settled.length === 0 &&
      this.returned.length === 0 &&
      unsettled === this.toldUnsettled
    )
      return;
    this.toldUnsettled = unsettled;
    this.send({
      type: "progress",
      done: this.done,
      settled: this.settled,
      returned: this.returned,
      extra,
      unsettled,
    });
    this.done = [];
    this.settled = [];
    this.returned = [];
  }
}
