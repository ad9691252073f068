/**
 * The beat of a worker's main thread, and how the heartbeat thread watches it. While a function of a task runs, the main thread may be
 * busy: then the time limit of the task counts.
 */
import { LeaseObserver } from "../mailbox/recover/lease-observer.ts";

/** A worker that hangs is ended by this signal. Nothing else sends it to a worker. */
export const HANG_SIGNAL: NodeJS.Signals = "SIGALRM";

const BEATS = 0;
const FUNCTIONS = 1;
const CELLS = 2;
const KEY = "main";
const KEYS: ReadonlySet<string> = new Set([KEY]);

export class MainBeat {
  private readonly cells: Int32Array;

  /** @param shared the memory of a `MainBeat` in another thread */
  constructor(readonly shared = new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT)) {
    this.cells = new Int32Array(shared);
  }

  /** Shows that the main thread moves. */
  beat(): void {
    Atomics.add(this.cells, BEATS, 1);
  }

  /** A function of a task begins. @returns call this when it has ended */
  enter(): () => void {
    Atomics.add(this.cells, FUNCTIONS, 1);
    return () => {
      // A beat: from now on the thread must move again.
      this.beat();
      Atomics.sub(this.cells, FUNCTIONS, 1);
    };
  }

  /** How many beats there were so far. */
  get count(): number {
    return Atomics.load(this.cells, BEATS);
  }

  /** Whether a function of a task runs, so that the thread may be busy. */
  get isInFunction(): boolean {
    return Atomics.load(this.cells, FUNCTIONS) > 0;
  }
}

/** The other side: call `isHanging` at each beat. */
export class MainWatch {
  private looks = 0;

  /** @param beatMs how often it looks. @param silence tests put a broken one here */
  constructor(
    private readonly beat: MainBeat,
    private readonly stallMs: number,
    beatMs: number,
    private readonly silence = new LeaseObserver(beatMs),
  ) {}

  /** @returns true when the main thread has not moved for `stall_ms` */
  isHanging(nowMs: number): boolean {
    if (this.stallMs === 0) return false;
    this.silence.beginRound(nowMs, KEYS);
    // While a function runs, each look counts as a beat. Negative numbers, because beats are not.
    const sign = this.beat.isInFunction ? -++this.looks : this.beat.count;
    return this.silence.silenceMs(KEY, sign, nowMs) >= this.stallMs;
  }
}
