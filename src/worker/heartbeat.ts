/** Starts the heartbeat thread, shows it that the main thread moves, and sets the time at which a blocked process must die. */
import { Worker as Thread } from "node:worker_threads";
import { messageOf, systemCode } from "../core/errors.ts";
import { touchDocument } from "../host/documents.ts";
import { pathOfEntry } from "../host/package.ts";
import { say } from "../host/say.ts";
import type { HeartbeatData } from "./heartbeat-thread.ts";
import type { MainBeat } from "./main-beat.ts";

/** The pause before the thread is started again, after it died because memory or open files ran out (ms). */
const AGAIN_MS = 1000;
/** Limits of the thread's heap. Without a size for code, V8 takes half a gigabyte more of address space. */
const HEAP = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4, codeRangeSizeMb: 8 };

/** @throws the system's error, with its code */
function startThread(...args: ConstructorParameters<typeof Thread>): Thread {
  try {
    return new Thread(...args);
  } catch (error) {
    if (systemCode(error) !== "ERR_WORKER_INIT_FAILED") throw error;
    // Node gives the system's code only in the text.
    throw Object.assign(new Error(`EAGAIN: no thread can be made: ${messageOf(error)}`), {
      code: "EAGAIN",
    });
  }
}

export class Heartbeat {
  private readonly data: HeartbeatData;
  private readonly deadline: Float64Array;
  private readonly alarm: Int32Array;
  private thread: Thread | undefined;
  /** Called when the thread has started. */
  private onRunning: (() => void) | undefined;
  private again: NodeJS.Timeout | undefined;
  private pulse: NodeJS.Timeout | undefined;

  /** @param main the beat of this thread. @param onBack called when the heartbeat thread runs again after it died */
  constructor(
    data: Omit<HeartbeatData, "deadline" | "alarm" | "main">,
    private readonly main: MainBeat,
    private readonly onBack: () => void,
  ) {
    const shared = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    this.deadline = new Float64Array(shared);
    const alarm = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.alarm = new Int32Array(alarm);
    this.data = { ...data, deadline: shared, alarm, main: main.shared };
  }

  /**
   * Call before the first claim, because a task may block this thread at once.
   * @param onRunning called when the thread has all that it needs; nothing may be claimed before. Left out: the thread counts as
   *   running at once
   * @throws Error with code EAGAIN when the system can make no thread
   */
  start(onRunning = this.onRunning): void {
    this.onRunning = onRunning;
    this.pulse ??= setInterval(() => this.main.beat(), this.data.beatMs).unref();
    const thread = startThread(pathOfEntry("worker/heartbeat-thread"), {
      workerData: this.data,
      resourceLimits: HEAP,
    });
    thread.once("online", () => {
      this.onRunning = undefined;
      onRunning?.();
    });
    this.thread = thread;
    this.again = undefined;
    thread.unref();
    // Running tasks continue, because their leases outlast this pause. Nothing is claimed until the thread is back.
    thread.on("error", (error) => {
      this.thread = undefined;
      say(`the heartbeat thread died: ${messageOf(error)}; trying again in ${AGAIN_MS} ms`);
      this.again = setTimeout(() => this.startAgain(), AGAIN_MS);
    });
  }

  /**
   * True until the thread has started, if `start` got `onRunning`, and between its death and its next start. Nothing may be
   * claimed then, because leases would expire.
   */
  get isDead(): boolean {
    return this.again !== undefined || this.onRunning !== undefined;
  }

  private startAgain(): void {
    try {
      this.start();
      this.onBack();
    } catch {
      // Without the thread, the file shows that this process moves.
      touchDocument(this.data.workerFile);
      this.again = setTimeout(() => this.startAgain(), AGAIN_MS);
    }
  }

  /** @param inMs by then some attempt must return control to the event loop, or the thread ends the process; undefined = no limit */
  setDeadline(inMs: number | undefined): void {
    const hadOne = this.deadline[0] !== 0;
    this.deadline[0] = inMs === undefined ? 0 : Number(process.hrtime.bigint()) / 1e6 + inMs;
    // If there was a deadline already, the thread checks again soon by itself.
    if (hadOne || inMs === undefined) return;
    Atomics.add(this.alarm, 0, 1);
    Atomics.notify(this.alarm, 0);
  }

  async stop(): Promise<void> {
    clearTimeout(this.again);
    clearInterval(this.pulse);
    await this.thread?.terminate();
  }
}
