/** Starts the heartbeat thread and tells it when a blocked process must die. */
import { Worker as Thread } from "node:worker_threads";
import { messageOf, systemCode } from "../core/errors.ts";
import { pathOfEntry } from "../host/package.ts";
import { say } from "../host/say.ts";
import type { HeartbeatData } from "./heartbeat-thread.ts";

/** Before it is started again, when it died for want of memory or of open files (ms). */
const AGAIN_MS = 1000;
/** Where nothing is said of the room for code, V8 takes half a gigabyte more of address space. */
const HEAP = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4, codeRangeSizeMb: 8 };

/** @throws what the system says, by its own code */
function startThread(...args: ConstructorParameters<typeof Thread>): Thread {
  try {
    return new Thread(...args);
  } catch (error) {
    if (systemCode(error) !== "ERR_WORKER_INIT_FAILED") throw error;
    // Node has the system's code in its text only.
    throw Object.assign(new Error(`EAGAIN: no thread can be made: ${messageOf(error)}`), {
      code: "EAGAIN",
    });
  }
}

export class Heartbeat {
  private readonly data: HeartbeatData;
  private readonly deadline: Float64Array;
  private readonly alarm: Int32Array;
  private readonly onBack: () => void;
  private thread: Thread | undefined;
  /** Called at its first beat. */
  private onRunning: (() => void) | undefined;
  private again: NodeJS.Timeout | undefined;

  /** @param onBack it runs again, after it had died for want of something */
  constructor(data: Omit<HeartbeatData, "deadline" | "alarm">, onBack: () => void) {
    this.onBack = onBack;
    const shared = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    this.deadline = new Float64Array(shared);
    const alarm = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.alarm = new Int32Array(alarm);
    this.data = { ...data, deadline: shared, alarm };
  }

  /**
   * Before the first claim: work may block this thread at once.
   * @param onRunning it has all that it needs; nothing may be claimed before. Left out: that is taken for granted
   * @throws Error with code EAGAIN when the system can make no thread
   */
  start(onRunning = this.onRunning): void {
    this.onRunning = onRunning;
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
    // What runs goes on, for its lease lasts longer than this; nothing is claimed until it is back.
    thread.on("error", (error) => {
      this.thread = undefined;
      say(`the heartbeat thread died: ${messageOf(error)}; trying again in ${AGAIN_MS} ms`);
      this.again = setTimeout(() => this.startAgain(), AGAIN_MS);
    });
  }

  /** True between its death and its next start, and while its first is waited for: leases would expire, so nothing may be claimed. */
  get isDead(): boolean {
    return this.again !== undefined || this.onRunning !== undefined;
  }

  private startAgain(): void {
    try {
      this.start();
      this.onBack();
    } catch {
      this.again = setTimeout(() => this.startAgain(), AGAIN_MS);
    }
  }

  /** @param inMs some attempt must have let go of the process by then, or a handler blocks it; undefined = no limit */
  setDeadline(inMs: number | undefined): void {
    const hadOne = this.deadline[0] !== 0;
    this.deadline[0] = inMs === undefined ? 0 : Number(process.hrtime.bigint()) / 1e6 + inMs;
    // A thread that has one looks again soon enough by itself.
    if (hadOne || inMs === undefined) return;
    Atomics.add(this.alarm, 0, 1);
    Atomics.notify(this.alarm, 0);
  }

  async stop(): Promise<void> {
    clearTimeout(this.again);
    await this.thread?.terminate();
  }
}
