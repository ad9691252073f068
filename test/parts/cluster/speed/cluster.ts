/** A tree that sends tasks, machines that work for it, and one server, all running and connected. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newPool, type Pool, readJson } from "../../../support/pool.ts";
import { type OnEnd, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "../nats/found.ts";
import { Server } from "../nats/server.ts";

const HANDLER = fileURLToPath(new URL("handler.mjs", import.meta.url));
/** As bench/pool.mjs has it: 600 bytes in all. */
export const PROMPT = "x".repeat(560);

export interface ClusterOptions {
  /** Of each machine: the targets that it serves beside its own name. */
  serves: readonly (readonly string[])[];
  /** Of each machine. */
  slots: number;
  ackWaitMs: number;
  onEnd: OnEnd;
}

export class Cluster {
  readonly origin: Pool;
  /** By their names, m1 and on. */
  readonly machines: ReadonlyMap<string, Pool>;
  readonly server: Server;
  private readonly tracePath: string;
  private count = 0;

  private constructor(
    server: Server,
    origin: Pool,
    machines: ReadonlyMap<string, Pool>,
    trace: string,
  ) {
    this.server = server;
    this.origin = origin;
    this.machines = machines;
    this.tracePath = trace;
  }

  static async start(o: ClusterOptions): Promise<Cluster> {
    const dir = tempDir(o.onEnd);
    const server = await Server.start(dir);
    o.onEnd(() => server.kill());
    const trace = join(dir, "trace");
    fs.writeFileSync(trace, "");
    const targets = [...new Set(o.serves.flat())];
    const agents = targets.map(
      (name) => `  - {name: ${name}, kind: remote, where: ${name}, as: coder}`,
    );
    const origin = newSide(server, trace, o, "origin", {
      cluster: "",
      config: `workers: 8\nagents:\n${agents.join("\n")}\n  - {name: here, kind: module, module: ${HANDLER}}`,
    });
    const machines = new Map(
      o.serves.map((served, at) => {
        const name = `m${at + 1}`;
        const pool = newSide(server, trace, o, name, {
          cluster: `slots: ${o.slots}\n  accept: [coder]\n  serves: [${served.join(", ")}]`,
          config: `workers: ${o.slots}\nagents:\n  - {name: coder, kind: module, module: ${HANDLER}}`,
        });
        return [name, pool] as const;
      }),
    );
    const cluster = new Cluster(server, origin, machines, trace);
    await Promise.all([origin, ...machines.values()].map(startSide));
    await cluster.ready(o.slots);
    return cluster;
  }

  /** @returns the time just before the tasks appeared (monotonic ms) */
  drop(agent: string, tasks: number, payload: object = {}): { ids: string[]; fromMs: number } {
    const ids = Array.from({ length: tasks }, () => `t${++this.count}`);
    const text = JSON.stringify({ agent, prompt: PROMPT, payload });
    for (const id of ids) fs.writeFileSync(join(this.origin.dir, id), text);
    const fromMs = monotonicMs();
    for (const id of ids)
      fs.renameSync(join(this.origin.dir, id), join(this.origin.inbox, `${id}.json`));
    return { ids, fromMs };
  }

  /** Waits until so many more tasks have settled than `before`. @returns when the last one had (monotonic ms) */
  async settled(before: number, tasks: number, timeoutMs = 120_000): Promise<number> {
    await waitFor(() => this.origin.settledCount() >= before + tasks, {
      what: `${tasks} settled tasks`,
      timeoutMs,
    });
    return monotonicMs();
  }

  /** Where and when the runs with this mark began (monotonic ms). */
  begun(mark: string): { machine: string; atMs: number }[] {
    const lines = fs.readFileSync(this.tracePath, "utf8").split("\n").slice(0, -1);
    return lines.flatMap((line) => {
      const [of, machine = "", us] = line.split(" ");
      return of === mark ? [{ machine, atMs: Number(us) / 1000 }] : [];
    });
  }

  /** Kills all of it. */
  async end(): Promise<void> {
    await Promise.all([this.origin, ...this.machines.values()].map((pool) => pool.killAll()));
    await this.server.kill();
  }

  /** Waits until the tree knows that all machines have all their slots. */
  async ready(slots: number): Promise<void> {
    interface Known {
      machines: { name: string; room: number; open: number }[];
    }
    const path = join(this.origin.state, "cluster", "bridge.json");
    const isReady = (): boolean => {
      const { machines } = readJson<Known>(path) ?? { machines: [] };
      // The tree itself reports its slots, too.
      const workers = machines.filter(({ name }) => this.machines.has(name));
      const idle = workers.filter(({ room, open }) => room === slots && open === 0);
      return idle.length === this.machines.size;
    };
    await waitFor(isReady, { what: "machines that are ready", timeoutMs: 60_000 });
  }
}

function newSide(
  server: Server,
  trace: string,
  { ackWaitMs, onEnd }: ClusterOptions,
  name: string,
  more: { cluster: string; config: string },
): Pool {
  const config = `
durability: process
settle_ms: 300
grace_ms: 500
cluster:
  servers: ["${server.url}"]
  name: ${name}
  ack_wait_ms: ${ackWaitMs}
  ${more.cluster}
${more.config}
`;
  const pool = newPool({
    config,
    onEnd,
    env: { MAILCHUTE_SPEED_TRACE: trace, MAILCHUTE_SPEED_MACHINE: name },
  });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  return pool;
}

async function startSide(pool: Pool): Promise<void> {
  await pool.start(["--no-live"]);
  const bridge = pool.spawn(["bridge"]);
  await waitFor(() => bridge.stderr().includes("(pid") || bridge.child.exitCode !== null, {
    what: "the bridge",
  });
  if (bridge.child.exitCode !== null) throw new Error(bridge.stderr());
}

export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}
