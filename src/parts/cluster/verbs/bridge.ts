/** `bridge`: carries tasks and results between a state tree and the NATS servers of its cluster, until it is stopped. */
import fs from "node:fs";
import os from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { FOLLOW } from "../../../app/follow.ts";
import { defineCommand, type Output } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { existingTree, openSettings } from "../../../cli/shell/options.ts";
import { ErrInvalidConfig, ErrIo, messageOf } from "../../../core/errors.ts";
import type { ClusterSettings, Settings } from "../../../core/settings.ts";
import { type StateTree, stateTree } from "../../../core/state-tree.ts";
import type { Task } from "../../../core/task.ts";
import { lockFile } from "../../../host/file-lock.ts";
import { makeDirs } from "../../../host/make-dirs.ts";
import { Telemetry } from "../../../journal/telemetry.ts";
import { openTrays } from "../../../mailbox/files/trays.ts";
import { safe } from "../../../text/render.ts";
import { Bridge } from "../bridge.ts";
import { NatsBroker } from "../nats/broker.ts";
import { loadNats, type Nats } from "../nats/packages.ts";
import { isTarget } from "../protocol/dispatch.ts";
import { MachineFiles } from "../tree/machine-files.ts";
import { OriginFiles } from "../tree/origin-files.ts";
import { clusterDir, treeName } from "../tree/tree-name.ts";

/** The same trouble is told again after this time (ms). */
const TELL_AGAIN_MS = 60_000;
/** The pause before a server is tried again that did not answer at the start (ms). */
const CONNECT_AGAIN_MS = 1000;

export const command = defineCommand({
  usage: "",
  isLongLived: true,
  details: [
    "Sends tasks of remote agents to other machines and settles them with the results; runs tasks of others if `cluster: serves:` in config.yaml names some. " +
      "It can be killed and started again at any time. Ctrl-C and SIGTERM end it.",
  ],
  options: {},
  async run(ctx) {
    existingTree(ctx);
    const { settings, mailboxDir } = await openSettings(ctx);
    const { cluster } = settings;
    const path = stateTree(ctx.stateDir).config;
    if (cluster.servers.length === 0)
      throw new ErrInvalidConfig("cluster: no servers are named", {
        path,
        phase: "cluster",
        hint: "name them in config.yaml: cluster: {servers: [nats://HOST:4222]}",
      });
    const tree = stateTree(ctx.stateDir, mailboxDir);
    const name = nameOf(cluster, path);
    const around = dirname(resolve(ctx.stateDir));
    const nats = loadNats(around);
    makeDirs(clusterDir(tree.dir));
    const release = await lockFile(join(clusterDir(tree.dir), "bridge.lock"));
    if (release === undefined)
      throw new ErrIo("another bridge runs on this state tree", {
        path: tree.dir,
        phase: "cluster",
        hint: "one is enough; end the other one first",
      });
    try {
      await carry(ctx.out, { tree, settings, name, nats });
    } finally {
      await release();
    }
    return EXIT.ok;
  },
});

interface Ends {
  tree: StateTree;
  settings: Settings;
  /** The name of this machine. */
  name: string;
  nats: Nats;
}

/** Runs a bridge until the process gets a signal. */
async function carry(out: Output, { tree, settings, name, nats }: Ends): Promise<void> {
  const { cluster, durability, uids } = settings;
  const trays = openTrays(tree.mailbox, { durability, uids });
  const telemetry = new Telemetry(tree, "bridge", settings.lease_ttl_ms, trays.clock);
  const treeId = treeName(tree.dir);
  const tell = newTeller(
    (message) => out.note(safe(message)),
    () => performance.now(),
  );
  const follow = FOLLOW[0]?.({ trays, runs: tree.runs, settings, tell });
  if (follow !== undefined) trays.follow = follow;
  const stopped = new Promise<true>((end) => {
    process.once("SIGINT", () => end(true));
    process.once("SIGTERM", () => end(true));
  });
  const credentials =
    cluster.credentials === "" ? undefined : resolve(tree.dir, cluster.credentials);
  const connect = (): Promise<NatsBroker> =>
    NatsBroker.connect(nats, {
      servers: cluster.servers,
      name,
      tree: treeId,
      replicas: cluster.replicas,
      ackWaitMs: cluster.ack_wait_ms,
      ...(credentials === undefined ? {} : { creds: fs.readFileSync(credentials) }),
      onTrouble: (error) => tell(messageOf(error)),
    });
  const broker = await tryAgain(connect, stopped, (error) =>
    tell(`waits for ${cluster.servers.join(", ")}: ${messageOf(error)}`),
  );
  if (broker === undefined) return;
  const bridge = new Bridge({
    name,
    tree: treeId,
    broker,
    origin: new OriginFiles({ trays, settings, telemetry, tree: treeId }),
    machine: new MachineFiles({
      stateDir: tree.dir,
      trays,
      control: openTrays(tree.control, { durability, uids }),
      accept: { agents: cluster.accept, fields: cluster.accept_fields },
    }),
    serves: cluster.serves,
    slots: cluster.slots,
    ackWaitMs: cluster.ack_wait_ms,
    agentOf: (task) => agentAbroad(settings, task),
    tell,
  });
  bridge.start();
  out.note(`bridge of ${tree.mailbox}: machine ${name}, tree ${treeId} (pid ${process.pid})`);
  await stopped;
  await bridge.stop();
  telemetry.close();
}

/** Connects as soon as a server answers. @returns undefined when it is stopped before */
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

function nameOf({ name }: ClusterSettings, path: string): string {
  const own = name === "" ? (os.hostname().toLowerCase().split(".")[0] ?? "") : name;
  if (isTarget(own)) return own;
  throw new ErrInvalidConfig(`cluster: ${JSON.stringify(own)} cannot be the name of a machine`, {
    path,
    phase: "cluster",
    hint: "set cluster: name: to up to 32 of a-z, 0-9 and -",
  });
}

/** The name at other machines of the agent of a task. */
function agentAbroad({ agents }: Settings, { agent }: Task): string {
  const known =
    agents.find(({ name }) => name === agent) ??
    agents.find(({ kind, default: isDefault }) => kind === "remote" && isDefault === true);
  return known?.as ?? known?.name ?? agent ?? "";
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
