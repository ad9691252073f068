/** How fast a storm goes: how many faults there may have been by now, and when it must have come further. Pure; times are monotonic ms. */

/** The part of the faults that come before anything has settled. */
const AHEAD = 0.1;
/** The part of the time in which there may be faults; the rest is for what they have left. */
const FAULTS_PART = 0.8;
/** How long nothing may settle, beside the longest hold and what the protocol waits (ms). */
const STALL_MS = 60_000;
/** A job of which nothing is heard is looked for after three times `ack_wait`, and delivered again after one. */
const ACK_WAITS = 4;

export interface PaceOptions {
  tasks: number;
  faults: number;
  /** It must be over within this time. */
  minutes: number;
  /** The longest that something stands still, or is cut off (ms). */
  holdMs: number;
  ackWaitMs: number;
  /** After this time the task of a dead process is taken back (ms). */
  leaseMs: number;
}

export class Pace {
  /** How long nothing may settle (ms). */
  readonly stallMs: number;
  private readonly options: PaceOptions;
  private readonly startMs: number;
  private progress = "";
  private progressMs: number;

  constructor(o: PaceOptions, nowMs: number) {
    this.options = o;
    this.startMs = nowMs;
    this.progressMs = nowMs;
    this.stallMs = o.holdMs + ACK_WAITS * o.ackWaitMs + o.leaseMs + STALL_MS;
  }

  /** For people. */
  get limits(): string {
    const { minutes } = this.options;
    return `it fails when nothing settles for ${Math.ceil(this.stallMs / 1000)} s, or when it is not over within ${minutes} minutes; faults come in the first ${FAULTS_PART * minutes}`;
  }

  minutes(nowMs: number): number {
    return (nowMs - this.startMs) / 60_000;
  }

  /**
   * How many faults there may have been. In proportion to what has settled, so that there is work until the last one; when that goes slowly,
   * in proportion to the time, so that all of them come.
   */
  faultsDue(settled: number, nowMs: number): number {
    const { faults } = this.options;
    return Math.min(faults, faults * (AHEAD + this.share(settled, nowMs)));
  }

  /** How far it is, from 0 to 1. */
  share(settled: number, nowMs: number): number {
    const { tasks, minutes } = this.options;
    return Math.max(settled / tasks, this.minutes(nowMs) / (FAULTS_PART * minutes));
  }

  /** @param progress another one each time something has settled @returns why it has failed; undefined while it has not */
  whyFailed(progress: string, nowMs: number): string | undefined {
    if (progress !== this.progress) {
      this.progress = progress;
      this.progressMs = nowMs;
    }
    if (this.minutes(nowMs) >= this.options.minutes)
      return `not over within ${this.options.minutes} minutes`;
    if (nowMs - this.progressMs < this.stallMs) return undefined;
    return `nothing has settled for ${Math.ceil(this.stallMs / 1000)} s`;
  }
}
