/** Starts the heartbeat thread and tells it when a blocked process must die. */
import { Worker as Thread } from "node:worker_threads";
import { urlOfEntry } from "../host/package.ts";
import type { HeartbeatData } from "./heartbeat-thread.ts";

export class Heartbeat {
  private readonly thread: Thread;
  private readonly deadline: Float64Array;

  constructor(data: Omit<HeartbeatData, "deadline">) {
    const shared = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    this.deadline = new Float64Array(shared);
    this.thread = new Thread(urlOfEntry("worker/heartbeat-thread"), {
      workerData: { ...data, deadline: shared } satisfies HeartbeatData,
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
    this.deadline[0] = inMs === undefined ? 0 : Number(process.hrtime.bigint()) / 1e6 + inMs;
  }

  async stop(): Promise<void> {
    await this.thread.terminate();
  }
}
