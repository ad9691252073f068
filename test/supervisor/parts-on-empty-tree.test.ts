/**
 * All parts in the list of the supervisor begin in a tree that has nothing, begin again, and keep the same kinds of files as in a tree
 * with all folders. A new part is tried as soon as it is in the list.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { FOLLOW } from "../../src/app/follow.ts";
import { PARTS } from "../../src/app/supervisor.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import type { MakePart } from "../../src/supervisor/part.ts";
import { Supervisor } from "../../src/supervisor/supervisor.ts";
import type { WorkerBoot, WorkerProcess } from "../../src/worker/protocol.ts";
import { placesOfTree } from "../inputs/every-place.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** Something for each part that has anything to keep. */
const CONFIG = `
durability: process
settle_ms: 50
sweep_ms: 200
grace_ms: 200
schedules: {often: {every: 1s, task: {exec: ["true"], group: few}}}
limits: {shared: {slots: 1, rate: 50/s}}
groups: {few: {slots: 1, limits: [shared]}}
on_success: {exec: ["true"]}
notify: [{name: me, command: [cat], on: [failed, stuck, drained]}]
`;
const PLAN = 'nodes: [{id: n, exec: ["true"]}]\n';
const WORKER = fileURLToPath(new URL("../../dist/worker/entry.cjs", import.meta.url));

/** Two pools, one after the other. @returns what they kept: each folder, with the endings of the files in it */
async function keptBy(parts: readonly MakePart[], isPrepared: boolean): Promise<string[]> {
  const state = join(tempDir(), "state");
  fs.mkdirSync(state);
  if (isPrepared) prepare(state);
  fs.writeFileSync(join(state, "config.yaml"), CONFIG);
  fs.writeFileSync(join(state, "roadmap.yaml"), PLAN);
  for (const pool of [1, 2]) await runUntil(state, parts, () => settledIn(state) >= 3 * pool);
  const { alerts } = stateTree(state);
  const told = fs.existsSync(alerts) ? fs.readFileSync(alerts, "utf8") : "";
  expect(told, "alerts").toBe("");
  return kindsOfFiles(state);
}

/** Makes all folders that the documents name. */
function prepare(state: string): void {
  const folders = placesOfTree().filter((place) => extname(place) === "" && !place.endsWith("-id"));
  for (const folder of folders) fs.mkdirSync(join(state, folder), { recursive: true });
}

function settledIn(state: string): number {
  const { mailbox } = stateTree(state);
  const dir = join(mailbox, "outbox");
  return fs.existsSync(dir) ? fs.readdirSync(dir).length : 0;
}

async function runUntil(
  state: string,
  parts: readonly MakePart[],
  isDone: () => boolean,
): Promise<void> {
  const tree = stateTree(state);
  const { settings } = loadSettings({ stateDir: state, env: {} });
  const options = { tree, settings: { ...settings, workers: 2, processes: 1 }, startWorker };
  const supervisor = new Supervisor(options, parts, FOLLOW[0]);
  const ended = supervisor.run();
  try {
    await waitFor(isDone, { what: "some tasks" });
  } finally {
    supervisor.stop(true);
    await ended;
  }
}

/** A worker of the built program, because Node loads no TypeScript. */
function startWorker(orders: WorkerBoot): WorkerProcess {
  const child = spawn(process.execPath, [WORKER], {
    stdio: ["ignore", 2, 2, "ipc"],
    env: { ...process.env, MAILCHUTE_WORKER_BOOT: orders.stateDir },
  });
  child.send(orders);
  return child;
}

/** What comes and goes, and what is named by the time. */
const PASSING = /^(?:mailbox\/(?:inbox|processing|\.tmp)|limits|runs)\//;

function kindsOfFiles(state: string): string[] {
  const files = fs
    .readdirSync(state, { recursive: true, encoding: "utf8" })
    .filter((path) => fs.lstatSync(join(state, path)).isFile())
    .filter((path) => !PASSING.test(path));
  const kinds = files.map((path) => `${dirname(path)}/*${extname(path)}`);
  return [...new Set(kinds)].sort();
}

it("parts keep in a tree that has nothing what they keep in one with all folders", async () => {
  expect(PARTS.length).toBeGreaterThan(10);
  const [empty, prepared] = await Promise.all([keptBy(PARTS, false), keptBy(PARTS, true)]);
  expect(empty).toEqual(prepared);
  expect(empty).toEqual(expect.arrayContaining(["schedules/.log/*.json", "notify/*.json"]));
});

it("a part that keeps something only where its folder is there is found", async () => {
  const careless: MakePart = ({ env }) => ({
    ports: {},
    start: () => Promise.resolve(),
    work() {
      const dir = join(env.tree.dir, "breakers");
      if (fs.existsSync(dir)) fs.writeFileSync(join(dir, "x.kept"), "");
    },
    nextMs: () => Number.POSITIVE_INFINITY,
    finish: () => Promise.resolve(),
    close() {},
  });
  const parts = [...PARTS, careless];
  const [empty, prepared] = await Promise.all([keptBy(parts, false), keptBy(parts, true)]);
  expect(prepared.filter((kind) => !empty.includes(kind))).toEqual(["breakers/*.kept"]);
});
