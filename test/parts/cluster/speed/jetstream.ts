/** What the servers allow: jobs published with an acknowledgement, taken, acknowledged, and a result of each published and taken. No files. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OnEnd } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "../nats/found.ts";
import { monotonicMs } from "./cluster.ts";

const WORKER = fileURLToPath(new URL("jetstream-worker.mjs", import.meta.url));
/** So many publishes wait for their acknowledgement at a time. */
const IN_FLIGHT = 256;
const MS_NS = 1e6;

/** As far as it is used here. */
interface Client {
  connect(options: object): Promise<{ close(): Promise<void> }>;
  jetstream(nc: unknown): {
    publish(subject: string, data: Uint8Array): Promise<unknown>;
    consumers: {
      get(stream: string, name: string): Promise<{ consume(options: object): Promise<unknown> }>;
    };
  };
  jetstreamManager(nc: unknown): Promise<{
    streams: { add(config: object): Promise<unknown> };
    consumers: { add(stream: string, config: object): Promise<unknown> };
  }>;
}

export interface Sizes {
  job: number;
  result: number;
}

export class BareJetStream {
  private readonly js: ReturnType<Client["jetstream"]>;
  private readonly url: string;
  private readonly sizes: Sizes;
  private readonly workers: ChildProcess[] = [];
  private readonly begunMs = new Map<string, number>();
  private taken = 0;
  private count = 0;

  private constructor(js: ReturnType<Client["jetstream"]>, url: string, sizes: Sizes) {
    this.js = js;
    this.url = url;
    this.sizes = sizes;
  }

  static async start(url: string, sizes: Sizes, ackWaitMs: number, onEnd: OnEnd) {
    const load = createRequire(join(CACHE, "package.json"));
    const client = {
      ...load("@nats-io/transport-node"),
      ...load("@nats-io/jetstream"),
    } as Client;
    const nc = await client.connect({ servers: [url] });
    const manager = await client.jetstreamManager(nc);
    for (const [name, subjects] of [
      ["bare_work", "bare.work.>"],
      ["bare_result", "bare.result.>"],
    ]) {
      await manager.streams.add({
        name,
        subjects: [subjects],
        storage: "file",
        retention: "workqueue",
        num_replicas: 1,
      });
      await manager.consumers.add(name as string, {
        durable_name: "work",
        ack_policy: "explicit",
        ack_wait: ackWaitMs * MS_NS,
        max_ack_pending: -1,
      });
    }
    const bare = new BareJetStream(client.jetstream(nc), url, sizes);
    await bare.takeResults();
    onEnd(async () => {
      await bare.have(0, 0);
      await nc.close();
    });
    return bare;
  }

  /** @returns tasks a second, from the first publish to the last result */
  async rate(tasks: number): Promise<number> {
    const before = this.taken;
    const bytes = Buffer.alloc(this.sizes.job, "x");
    const fromMs = monotonicMs();
    let left = tasks;
    const send = async (): Promise<void> => {
      while (left-- > 0) await this.js.publish(`bare.work.${++this.count}`, bytes);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, send));
    await waitFor(() => this.taken >= before + tasks, { what: "the results" });
    return tasks / ((monotonicMs() - fromMs) / 1000);
  }

  /** @returns from before the publish to the start of the handler (ms) */
  async startMs(): Promise<number> {
    const id = String(++this.count);
    const fromMs = monotonicMs();
    await this.js.publish(`bare.work.${id}`, Buffer.alloc(this.sizes.job, "x"));
    return (await waitFor(() => this.begunMs.get(id), { what: "the start" })) - fromMs;
  }

  /** Starts and ends worker processes until there are so many. */
  async have(processes: number, slots: number): Promise<void> {
    while (this.workers.length > processes) {
      const worker = this.workers.pop() as ChildProcess;
      worker.kill("SIGKILL");
      await once(worker, "exit");
    }
    while (this.workers.length < processes) {
      const options = { url: this.url, cache: join(CACHE, "package.json"), slots };
      const worker = fork(WORKER, [JSON.stringify({ ...options, result: this.sizes.result })]);
      this.workers.push(worker);
      await once(worker, "message");
      worker.on("message", (message: { id: string; startMs: number }) => {
        this.begunMs.set(message.id, message.startMs);
      });
    }
  }

  private async takeResults(): Promise<void> {
    const consumer = await this.js.consumers.get("bare_result", "work");
    await consumer.consume({
      max_messages: IN_FLIGHT,
      callback: (message: { ack(): void }) => {
        message.ack();
        this.taken++;
      },
    });
  }
}
