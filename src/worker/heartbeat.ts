/** Starts the heartbeat thread and tells it when a blocked process must die. */
import { Worker as Thread } from "node:worker_threads";
import { pathOfEntry } from "../host/package.ts";
import type { HeartbeatData } from "./heartbeat-thread.ts";

export class Heartbeat {
  private readonly data: HeartbeatData;
  private readonly deadline: Float64Array;
  private readonly alarm: Int32Array;
  private thread: Thread | undefined;

  constructor(data: Omit<HeartbeatData, "deadline" | "alarm">) {
    const shared = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    this.deadline = new Float64Array(shared);
    const alarm = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.alarm = new Int32Array(alarm);
    this.data = { ...data, deadline: shared, alarm };
  }

  /** Before work starts, which may block this thread at once. Does nothing when it was started before. */
  start(): void {
    if (this.thread !== undefined) return;
    this.thread = new Thread(pathOfEntry("worker/heartbeat-thread"), {
      workerData: this.data,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    this.thread.unref();
    // Without a heartbeat the leases would expire: better to die now, visibly, and be replaced.
    this.thread.on("error", (error) => {
      process.stderr.write(`mailchute: the heartbeat thread died: ${error.message}\n`);
      process.exit(70);
    });
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
    await this.thread?.terminate();
  }
}
