/** A machine of a storm: a state tree with its supervisor and its bridge, which are started again whenever they end, and its lines. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newPool, type Pool, type Running } from "../../../support/pool.ts";
import type { OnEnd } from "../../../support/temp-dir.ts";
import { CACHE } from "../nats/found.ts";
import { Line } from "./line.ts";
import type { Servers } from "./servers.ts";

type Verb = "run" | "bridge";

/** A pool that has ended is not started again before (ms): a supervisor that was refused would come again and again. */
const AGAIN_MS = 300;
/** After this time the task of a process that is gone is taken back (ms). */
export const LEASE_MS = 3000;
const BROKEN_BRIDGE = fileURLToPath(new URL("broken-bridge.mjs", import.meta.url));

export interface MachineOptions {
  name: string;
  servers: Servers;
  ackWaitMs: number;
  /** Lines of its config.yaml below `cluster:`, and after it. */
  cluster: string;
  config: string;
  env?: Record<string, string>;
  onEnd: OnEnd;
}

export class Machine {
  readonly name: string;
  readonly pool: Pool;
  readonly lines: readonly Line[];
  readonly problems: string[] = [];
  starts = 0;
  private readonly bridgeLauncher: string | undefined;
  private readonly running = new Map<Verb, Running>();
  /** Not started before (ms). */
  private readonly notBeforeMs = new Map<Verb, number>();

  private constructor({ name, onEnd, ...o }: MachineOptions, lines: readonly Line[]) {
    this.name = name;
    this.lines = lines;
    this.bridgeLauncher =
      o.env?.["MAILCHUTE_STORM_BREAK"] === undefined ? undefined : BROKEN_BRIDGE;
    const config = `
durability: process
settle_ms: 300
sweep_ms: 500
grace_ms: 500
heartbeat_ms: 300
lease_ttl_ms: ${LEASE_MS}
retention: {outbox_days: 100, failed_days: 100}
retry: {max_attempts: 1000, backoff_ms: 20, backoff_max_ms: 200}
cluster:
  servers: [${lines.map(({ url }) => JSON.stringify(url)).join(", ")}]
  name: ${name}
  ack_wait_ms: ${o.ackWaitMs}
  replicas: ${o.servers.all.length}
  ${o.cluster}
${o.config}
`;
    this.pool = newPool({ config, onEnd, env: o.env ?? {} });
    fs.symlinkSync(join(CACHE, "node_modules"), join(this.pool.dir, "node_modules"));
  }

  static async make(options: MachineOptions): Promise<Machine> {
    const lines = await Promise.all(options.servers.all.map(({ port }) => Line.to(port)));
    options.onEnd(() => {
      for (const line of lines) line.close();
    });
    return new Machine(options, lines);
  }

  /** Starts what does not run. */
  keep(): void {
    for (const verb of ["run", "bridge"] as const) {
      if (this.running.has(verb) || performance.now() < (this.notBeforeMs.get(verb) ?? 0)) continue;
      this.running.set(verb, this.start(verb));
    }
  }

  pidOf(verb: Verb): number | undefined {
    return this.running.get(verb)?.pid;
  }

  /** Nothing is started for so long (ms). */
  rest(ms: number): void {
    for (const verb of ["run", "bridge"] as const)
      this.notBeforeMs.set(verb, performance.now() + ms);
  }

  /** What its bridge and its supervisor have said last. */
  said(): string {
    return [...this.running]
      .map(([verb, running]) => `${this.name} ${verb}: ${running.stderr().slice(-600)}`)
      .join("\n");
  }

  private start(verb: Verb): Running {
    this.starts++;
    const running =
      verb === "run"
        ? this.pool.spawn(["run", "--no-live"])
        : this.pool.spawn(["bridge"], this.bridgeLauncher);
    // Not `ended`: workers that outlive it keep its output open.
    running.child.once("exit", (code, signal) => {
      this.running.delete(verb);
      this.notBeforeMs.set(
        verb,
        Math.max(this.notBeforeMs.get(verb) ?? 0, performance.now() + AGAIN_MS),
      );
      // 4: the one before it has not ended yet.
      if (signal === null && code !== 4)
        this.problems.push(`${this.name}: ${verb} ended with ${code}: ${running.stderr()}`);
      const trace = /^.*(?:\n {4}at .*)+/m.exec(running.stderr())?.[0];
      if (trace !== undefined) this.problems.push(`${this.name}: ${verb} threw: ${trace}`);
    });
    return running;
  }
}
