/** `bridge`: carries tasks and results between a state tree and the NATS servers of its cluster, until it is stopped. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { FOLLOW } from "../../../app/follow.ts";
import { defineCommand, type Output } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { AgentLines } from "../../../cli/text/agent-lines.ts";
import { ErrInvalidConfig, ErrIo, messageOf } from "../../../core/errors.ts";
import { matchAgent } from "../../../core/matching.ts";
import type { Settings } from "../../../core/settings.ts";
import type { Task } from "../../../core/task.ts";
import { lockFile } from "../../../host/file-lock.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { readVersion } from "../../../host/package.ts";
import { Telemetry } from "../../../journal/telemetry.ts";
import { openTrays, type Trays } from "../../../mailbox/files/trays.ts";
import { safe } from "../../../text/render.ts";
import { stopUnrenewed } from "../bridge/before-connected.ts";
import { Bridge } from "../bridge.ts";
import type { NatsBroker } from "../nats/broker.ts";
import { targetOf } from "../protocol/dispatch.ts";
import { Machines } from "../protocol/machines.ts";
import { RunsWriter, runsFile } from "../runs-writer.ts";
import { StatusWriter } from "../status-writer.ts";
import { bridgeWriter } from "../tree/bridge-document.ts";
import { clusterDir } from "../tree/cluster-dir.ts";
import { isDraining, setDraining } from "../tree/drain-file.ts";
import { LocalLogs } from "../tree/local-logs.ts";
import { LocalRuns } from "../tree/local-runs.ts";
import { MachineFiles } from "../tree/machine-files.ts";
import { OriginCosts } from "../tree/origin-costs.ts";
import { OriginFiles } from "../tree/origin-files.ts";
import { pauseOf } from "../tree/pause.ts";
import { PoolRoom, roomOf } from "../tree/pool-room.ts";
import { treeName } from "../tree/tree-name.ts";
import { watchTrays } from "../tree/watch-trays.ts";
import { type ClusterPlace, connectTo, placeOf } from "./place.ts";

/** The same message is printed again only after this time (ms). */
const TELL_AGAIN_MS = 60_000;
/** While the settings do not fit the servers, that is found again and again within this time (ms). */
const REFUSAL_MS = 30_000;
/** At the start, the pause before it tries again to reach a server (ms). */
const CONNECT_AGAIN_MS = 1000;

export const command = defineCommand({
  usage: "",
  isLongLived: true,
  details: [
    "Sends tasks of remote agents to other machines and settles them with the results; runs tasks of others if `cluster: serves:` in config.yaml names some. " +
      "It can be killed and started again at any time. Ctrl-C and SIGTERM end it. With `cluster: {bridge: true}` in config.yaml, `mailchute run` starts it.",
  ],
  options: {},
  async run(ctx) {
    const place = await placeOf(ctx);
    const { tree } = place;
    makeDirs(clusterDir(tree.dir));
    const release = await lockFile(join(clusterDir(tree.dir), "bridge.lock"));
    if (release === undefined)
      throw new ErrIo("another bridge runs on this state tree", {
        path: tree.dir,
        phase: "cluster",
        hint: "one is enough; end the other one first",
      });
    try {
      await carry(ctx.out, place);
    } finally {
      await release();
      if (process.connected) process.disconnect();
    }
    return EXIT.ok;
  },
});

/** Runs a bridge until the process gets a signal. */
async function carry(out: Output, place: ClusterPlace): Promise<void> {
  const { tree, settings, name } = place;
  const { cluster, durability, uids } = settings;
  const trays = openTrays(tree.mailbox, { durability, uids });
  const telemetry = new Telemetry(tree, "bridge", settings.lease_ttl_ms, trays.clock);
  const treeId = treeName(tree.dir, name);
  const tell = newTeller(
    (message) => out.note(safe(message)),
    () => performance.now(),
  );
  const follow = FOLLOW[0]?.({ trays, runs: tree.runs, settings, tell });
  if (follow !== undefined) trays.follow = follow;
  const stopped = untilStopped();
  const refusal = new Refusal();
  const connect = (): Promise<NatsBroker> =>
    connectTo(place, treeId, (error) => {
      tell(messageOf(error));
      refusal.note(error);
    });
  const runs = new LocalRuns({ tree, prices: settings.prices, lines: new AgentLines() });
  const machine = machineOf(place, trays, runs);
  const isConnected = stopUnrenewed(machine, { name, ackWaitMs: cluster.ack_wait_ms, tell });
  const broker = await tryAgain(connect, stopped, (error) =>
    tell(`waits for ${cluster.servers.join(", ")}: ${messageOf(error)}`),
  );
  await isConnected();
  if (broker === undefined) return;
  const pool = new PoolRoom(tree, trays, (id) => machine.note(id) !== undefined);
  const program = readVersion();
  const remote = settings.agents.filter(({ kind }) => kind === "remote").map(targetOf);
  const targets = [...remote, ...Object.values(cluster.groups)];
  const machines = new Machines(cluster.ack_wait_ms);
  const self = { version: program, machine: name, tree: treeId, servers: cluster.servers };
  const status = new StatusWriter({
    self: () => ({ ...self, is_connected: broker.isConnected, ...refusal.trouble() }),
    machines,
    targets,
    write: bridgeWriter(tree.dir),
  });
  const costs = new OriginCosts(tree);
  const origin = new OriginFiles({ trays, settings, telemetry, tree: treeId, costs });
  const { prices } = settings;
  const remoteRuns = new RunsWriter({ origin, costs, prices, write: runsFile(tree) });
  const bridge = new Bridge({
    name,
    tree: treeId,
    broker,
    origin,
    machine,
    machines,
    logs: new LocalLogs(tree),
    publish: (view) => {
      status.update(view, performance.now(), Date.now());
      remoteRuns.update(view, performance.now());
    },
    serves: cluster.serves,
    sends: targets.length > 0,
    room: () => roomOf(cluster, pool.now()),
    isPaused: pauseOf(tree),
    isDraining: () => isDraining(tree.dir),
    drain: (isOn) => setDraining(tree.dir, isOn),
    program,
    ackWaitMs: cluster.ack_wait_ms,
    agentOf: (task) => agentAbroad(settings, task),
    tell,
  });
  bridge.start();
  const unwatch = watchTrays(trays, () => bridge.wake());
  out.note(`bridge of ${tree.mailbox}: machine ${name}, tree ${treeId} (pid ${process.pid})`);
  await stopped;
  unwatch();
  await bridge.stop();
  runs.close();
  telemetry.close();
}

function untilStopped(): Promise<true> {
  return new Promise((end) => {
    process.once("SIGINT", () => end(true));
    process.once("SIGTERM", () => end(true));
    // The supervisor that started this bridge is gone: its channel is closed.
    process.once("disconnect", () => end(true));
  });
}

/** Remembers for a while that the settings do not fit the servers. */
class Refusal {
  private last: { text: string; atMs: number } | undefined;

  note(error: unknown): void {
    if (error instanceof ErrInvalidConfig)
      this.last = { text: error.message, atMs: performance.now() };
  }

  trouble(): { trouble?: string } {
    const { last } = this;
    const isNow = last !== undefined && performance.now() - last.atMs < REFUSAL_MS;
    return isNow ? { trouble: last.text } : {};
  }
}

/** The half of the tree that works for others. */
function machineOf({ tree, settings }: ClusterPlace, trays: Trays, runs: LocalRuns): MachineFiles {
  const { cluster, durability, uids } = settings;
  return new MachineFiles({
    stateDir: tree.dir,
    trays,
    control: openTrays(tree.control, { durability, uids }),
    accept: { agents: cluster.accept, fields: cluster.accept_fields },
    runs,
  });
}

/** Connects as soon as a server answers. @returns undefined when the bridge is stopped before */
async function tryAgain(
  connect: () => Promise<NatsBroker>,
  stopped: Promise<true>,
  onError: (error: unknown) => void,
): Promise<NatsBroker | undefined> {
  for (;;) {
    try {
      return await connect();
    } catch (error) {
      onError(error);
      if (await Promise.race([stopped, wait(CONNECT_AGAIN_MS, false)])) return undefined;
    }
  }
}

/** The name that the agent of a task has at other machines. */
function agentAbroad({ agents }: Settings, task: Task): string {
  const known = matchAgent(task, agents).agent;
  return known?.as ?? known?.name ?? task.agent ?? "";
}

function newTeller(say: (message: string) => void, nowMs: () => number) {
  const told = new Map<string, number>();
  return (message: string): void => {
    const atMs = told.get(message);
    if (atMs !== undefined && nowMs() - atMs < TELL_AGAIN_MS) return;
    if (told.size > 100) told.clear();
    told.set(message, nowMs());
    say(message);
  };
}
