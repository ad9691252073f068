/** What a thousand machines and a hundred thousand waiting tasks cost the tree that has the tasks. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseName } from "../../../../src/core/names.ts";
import { loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { beatSubject, machineSubject } from "../../../../src/parts/cluster/nats/streams.ts";
import { readHeld } from "../../../../src/parts/cluster/protocol/dispatch.ts";
import { encodeMessage } from "../../../../src/parts/cluster/protocol/message-codec.ts";
import { treeName } from "../../../../src/parts/cluster/tree/tree-name.ts";
import { newPool, type Pool, type Running } from "../../../support/pool.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "../nats/found.ts";
import { Server } from "../nats/server.ts";
import { PROMPT } from "./cluster.ts";
import type { Found, MeasureOptions } from "./measures.ts";
import { cpuMs } from "./processor.ts";
import { median, row } from "./table.ts";

const TASKS = 100_000;
const MACHINES = 1000;
/** As bridges do it (ms). */
const REPORT_MS = 1000;
const BEAT_MS = 5000;
/** A supervisor counts as at rest when it uses less of a core. */
const REST_SHARE = 0.2;
const WATCH_MS = 10_000;
const LOOKS = 5;
const ORIGIN = "origin";
const HANDLER = fileURLToPath(new URL("handler.mjs", import.meta.url));

interface Cost {
  /** Of a core. */
  supervisor: number;
  statusMs: number;
  bridge?: number;
}

export async function measureMany(o: MeasureOptions): Promise<Found> {
  const without = await costOfWaiting(o);
  const withMachines = await costOfMachines(o);
  const line = (name: string, { supervisor, statusMs, bridge }: Cost): string =>
    row(name, 100 * supervisor, statusMs, bridge === undefined ? "-" : 100 * bridge);
  return {
    lines: [
      row("100,000 tasks wait", "supervisor", "status", "bridge"),
      row("", "% of a core", "ms", "% of a core"),
      line("for a slot here", without),
      line("for 1,000 machines at work", withMachines),
    ],
    goals: [
      {
        text: "status with 1,000 machines ÷ without",
        value: withMachines.statusMs / without.statusMs,
        atMost: 2,
      },
      {
        text: "processor time of the supervisor with 1,000 machines (% of a core)",
        value: 100 * withMachines.supervisor,
        atMost: Math.max(5, 200 * without.supervisor),
      },
    ],
  };
}

/** They wait for the one slot, which a task has that sleeps. */
async function costOfWaiting({ onEnd, tell }: MeasureOptions): Promise<Cost> {
  const config = `durability: process\nworkers: 1\nagents: [{name: here, kind: module, module: ${HANDLER}}]`;
  const pool = newPool({ config, onEnd });
  const run = await pool.start(["--no-live"]);
  pool.drop("sleeps", { agent: "here", payload: { ms: 3_600_000 } });
  await waitFor(() => fs.readdirSync(pool.processing).some((file) => file.includes("~w-")), {
    what: "its start",
  });
  fill(pool, "here");
  const cost = await costOf(pool, run);
  tell(`for a slot here: ${JSON.stringify(cost)}`);
  await pool.killAll();
  return cost;
}

/** Each machine has one of them, and half as many are on their way. */
async function costOfMachines({ onEnd, tell }: MeasureOptions): Promise<Cost> {
  const server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
  const config = `
durability: process
workers: 8
agents: [{name: far, kind: remote, where: any, as: coder}]
cluster: {servers: ["${server.url}"], name: ${ORIGIN}}
`;
  const pool = newPool({ config, onEnd });
  fs.symlinkSync(join(CACHE, "node_modules"), join(pool.dir, "node_modules"));
  const run = await pool.start(["--no-live"]);
  const bridge = pool.spawn(["bridge"]);
  await waitFor(() => bridge.stderr().includes("(pid"), { what: "the bridge" });
  await startMachines(server.url, pool, onEnd);
  fill(pool, "far");
  const isSent = (): boolean => heldOf(pool).length >= MACHINES;
  await waitFor(isSent, { what: "tasks on their way", timeoutMs: 120_000 });
  const beforeS = cpuMs(bridge.pid) / 1000;
  const fromMs = performance.now();
  const cost = await costOf(pool, run);
  const share = (cpuMs(bridge.pid) / 1000 - beforeS) / ((performance.now() - fromMs) / 1000);
  tell(`for machines: ${JSON.stringify(cost)}, ${heldOf(pool).length} on their way`);
  return { ...cost, bridge: share };
}

/** Says what a thousand machines would say, each with one task. They take no job: nobody looks whether they do. */
async function startMachines(
  url: string,
  pool: Pool,
  onEnd: MeasureOptions["onEnd"],
): Promise<void> {
  const nc = await loadNats(CACHE).connect({ servers: [url] });
  const names = Array.from({ length: MACHINES }, (_, at) => `sim-${at}`);
  const tree = treeName(pool.state, ORIGIN);
  const report = (): void => {
    for (const machine of names)
      nc.publish(
        machineSubject(machine),
        encodeMessage({
          machine,
          program: "0.1.0",
          serves: ["any"],
          room: 1,
          open: 1,
          is_draining: false,
          load: 1,
          cpus: 2,
        }),
      );
  };
  const beat = (): void => {
    const held = heldOf(pool);
    for (const [at, machine] of names.entries()) {
      const has = held[at];
      if (has === undefined) return;
      nc.publish(beatSubject(tree, machine), encodeMessage({ machine, has: [has] }));
    }
  };
  const timers = [setInterval(report, REPORT_MS), setInterval(beat, BEAT_MS)];
  onEnd(async () => {
    for (const timer of timers) clearInterval(timer);
    await nc.close();
  });
  report();
}

function heldOf(pool: Pool) {
  const tree = treeName(pool.state, ORIGIN);
  return fs.readdirSync(pool.processing).flatMap((file) => {
    const name = parseName(file);
    const held = name === undefined ? undefined : readHeld(tree, name);
    return held === undefined ? [] : [{ dispatch: held.dispatch, target: held.target }];
  });
}

function fill(pool: Pool, agent: string): void {
  const staged = join(pool.dir, "staged");
  const text = JSON.stringify({ agent, prompt: PROMPT });
  for (let n = 0; n < TASKS; n++) {
    fs.writeFileSync(staged, text);
    fs.renameSync(staged, join(pool.inbox, `t${n}.json`));
  }
}

async function costOf(pool: Pool, { pid }: Running): Promise<Cost> {
  // Until all tasks have been looked at.
  let share = 1;
  for (let looks = 0; looks < 60 && share > REST_SHARE; looks++) share = await shareOf(pid, 1000);
  const supervisor = await shareOf(pid, WATCH_MS);
  const looks: number[] = [];
  for (let n = 0; n < LOOKS; n++) {
    const fromMs = performance.now();
    const { code, stderr } = await pool.run(["status"]);
    if (code !== 0) throw new Error(`status ended with ${code}: ${stderr}`);
    looks.push(performance.now() - fromMs);
  }
  return { supervisor, statusMs: median(looks) };
}

async function shareOf(pid: number, ms: number): Promise<number> {
  const before = cpuMs(pid);
  const fromMs = performance.now();
  await wait(ms);
  return (cpuMs(pid) - before) / (performance.now() - fromMs);
}
