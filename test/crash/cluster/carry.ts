/**
 * carry.js DIR CASE FIRST [BROKEN]: the bridges of one tree that sends and of two machines carry a task until nothing is left to do.
 * FIRST: whose bridges are there at first, of `oab`, in this order; the others come later than `ack_wait`; with a `!` the servers lose all
 * before they come. Its clock goes by steps, so that the same calls come in the same order. It ends with 1 and a word when it does not come to rest.
 */
import { setImmediate as turn } from "node:timers/promises";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { Telemetry } from "../../../src/journal/telemetry.ts";
import { Bridge } from "../../../src/parts/cluster/bridge.ts";
import { Machines } from "../../../src/parts/cluster/protocol/machines.ts";
import { LocalLogs } from "../../../src/parts/cluster/tree/local-logs.ts";
import { MachineFiles } from "../../../src/parts/cluster/tree/machine-files.ts";
import { OriginCosts } from "../../../src/parts/cluster/tree/origin-costs.ts";
import { OriginFiles } from "../../../src/parts/cluster/tree/origin-files.ts";
import { treeName } from "../../../src/parts/cluster/tree/tree-name.ts";
import { breakBridges } from "./broken.ts";
import { CASES, type Stage } from "./cases.ts";
import { KeptBroker } from "./kept-broker.ts";
import { aliasOf, MACHINES, mailboxesOf, Notes, ORIGIN, worldOf } from "./places.ts";
import { MachinePool, OriginPool, TARGET } from "./pools.ts";

const ACK_WAIT_MS = 30_000;
const STEP_MS = 1000;
/** The steps after which nothing may be left to do: every silence and every pause of the protocol fits in several times. */
const STEPS_MAX = 1500;
const AWAY_MS = 1.5 * ACK_WAIT_MS;
const TURNS_MAX = 10_000;

interface Timer {
  run: () => void;
  ms: number;
  atMs: number;
}

const [dir = "", caseName = "", first = "oab", broken] = process.argv.slice(2);
if (broken !== undefined) breakBridges(broken);
const about = CASES[caseName] ?? fail(`no case ${caseName}`);
const broker = new KeptBroker(
  `${worldOf(dir)}/broker.json`,
  `${aliasOf(dir)}/broker.json`,
  ACK_WAIT_MS,
);
const timers: Timer[] = [];
performance.now = () => broker.nowMs;
globalThis.setInterval = ((run: () => void, ms: number) => {
  timers.push({ run, ms, atMs: broker.nowMs + ms });
  return {};
}) as never;

const notes = new Notes(dir);
const machines = MACHINES.filter((name) => about.isAlone !== true || name === "a");
const pools = machines.map((name) => new MachinePool(dir, name, notes));
const stage: Stage = { broker, origin: new OriginPool(dir), pools, notes };
const bridges = new Map<string, Bridge>();

function start(name: string): void {
  const state = stateTree(`${worldOf(dir)}/${name}`);
  const { tasks, control } = mailboxesOf(worldOf(dir), name);
  const settings = {
    ...DEFAULT_SETTINGS,
    retry: { ...DEFAULT_SETTINGS.retry, max_attempts: 3, backoff_ms: 1 },
  };
  const tree = treeName(state.dir, name);
  const bridge = new Bridge({
    name,
    tree,
    broker: broker.clientOf(name, tree),
    origin: new OriginFiles({
      trays: tasks,
      settings,
      telemetry: new Telemetry(state, "bridge", settings.lease_ttl_ms, tasks.clock),
      tree,
      costs: new OriginCosts(state),
    }),
    machine: new MachineFiles({
      stateDir: state.dir,
      trays: tasks,
      control,
      accept: { agents: about.isRefused === true ? [] : ["coder"], fields: [] },
    }),
    sends: name === ORIGIN,
    serves: name === ORIGIN ? [] : [TARGET],
    room: () => ({ slots: 4 }),
    isPaused: () => false,
    isDraining: () => false,
    drain: () => {},
    program: "",
    machines: new Machines(ACK_WAIT_MS),
    logs: new LocalLogs(state),
    publish: () => {},
    ackWaitMs: ACK_WAIT_MS,
    agentOf: () => "coder",
    tell: (text) => process.stdout.write(`${name}: ${text}\n`),
  });
  bridge.start();
  bridges.set(name, bridge);
}

/** Until no bridge has anything under way. */
async function quiet(): Promise<void> {
  for (let turns = 0, still = 0; still < 3; turns++) {
    if (turns > TURNS_MAX) fail("a bridge does not end its turn");
    await turn();
    const isBusy = [...bridges.values()].some((bridge) => {
      const { turns: open, isLooking } = bridge as unknown as {
        turns: Map<string, unknown>;
        isLooking: boolean;
      };
      return open.size > 0 || isLooking;
    });
    still = isBusy ? 0 : still + 1;
  }
}

function fail(text: string): never {
  process.stdout.write(`${text}\n`);
  process.exit(1);
}

function whatIsLeft(): string[] {
  return [
    ...(stage.origin.isSettled() ? [] : ["the task"]),
    ...broker.keys(),
    ...pools.flatMap((pool) => [
      ...pool.noted().map((id) => `${pool.name}: note ${id}`),
      ...(pool.isIdle() ? [] : [`${pool.name}: work`]),
    ]),
  ];
}

const names: string[] = [ORIGIN, ...machines];
for (const name of first) {
  if (!names.includes(name)) continue;
  start(name);
  await quiet();
  // Before the next one is there.
  broker.deliver();
  await quiet();
}
const fromMs = broker.nowMs;
for (let steps = 0; ; steps++) {
  if (steps > STEPS_MAX) fail(`left over: ${whatIsLeft().join(", ")}`);
  broker.pass(STEP_MS);
  if (broker.nowMs - fromMs > AWAY_MS && bridges.size < names.length) {
    if (first.includes("!")) broker.wipe();
    for (const name of names) if (!bridges.has(name)) start(name);
  }
  for (const timer of timers) {
    if (timer.atMs > broker.nowMs) continue;
    timer.atMs = broker.nowMs + timer.ms;
    timer.run();
    await quiet();
  }
  await about.step?.(stage);
  broker.deliver();
  await quiet();
  await stage.origin.work();
  for (const pool of pools)
    await pool.work(
      about.mayRun?.(stage) === false ? undefined : (about.endOf ?? (() => "completes")),
    );
  if (bridges.size === names.length && whatIsLeft().length === 0) break;
}
process.exit(0);
