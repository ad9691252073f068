/** A bridge with a state tree of its own and servers that do nothing but note what they are told. */
import fs from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { Telemetry } from "../../../src/journal/telemetry.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import type { BridgeOptions } from "../../../src/parts/cluster/bridge/options.ts";
import { Bridge } from "../../../src/parts/cluster/bridge.ts";
import type { Received } from "../../../src/parts/cluster/nats/intake.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { Machines } from "../../../src/parts/cluster/protocol/machines.ts";
import { encodeMessage } from "../../../src/parts/cluster/protocol/message-codec.ts";
import type { Beat, Job, Result } from "../../../src/parts/cluster/protocol/messages.ts";
import { RunsWriter, runsFile } from "../../../src/parts/cluster/runs-writer.ts";
import { LocalLogs } from "../../../src/parts/cluster/tree/local-logs.ts";
import { MachineFiles } from "../../../src/parts/cluster/tree/machine-files.ts";
import { OriginCosts } from "../../../src/parts/cluster/tree/origin-costs.ts";
import { OriginFiles } from "../../../src/parts/cluster/tree/origin-files.ts";
import { tempDir } from "../../support/temp-dir.ts";

export const TREE = "laptop.abcd2345";

export function stubBridge(more: Partial<BridgeOptions> = {}) {
  const tree = stateTree(tempDir());
  const trays = openTrays(tree.mailbox, { durability: "process" });
  fs.mkdirSync(join(tree.dir, "analytics"), { recursive: true });
  const telemetry = new Telemetry(tree, "bridge", 1000, trays.clock);
  /** The ids of the jobs that were sent, of the results, and the heartbeats. */
  const published: string[] = [];
  const results: string[] = [];
  const beats: { tree: string; beat: Beat }[] = [];
  let hear: (bytes: Buffer, sender: string) => void = () => {};
  let take: (received: Received) => void = () => {};
  const ready = async (): Promise<void> => {};
  const broker = {
    isConnected: true,
    publishJob: async ({ dispatch }: Job) => void published.push(dispatchId(dispatch)),
    publishResult: async ({ dispatch }: Result) => void results.push(dispatchId(dispatch)),
    beat: (to: string, beat: Beat) => void beats.push({ tree: to, beat }),
    onBeats: (take: typeof hear) => {
      hear = take;
    },
    jobs: async () => [],
    jobsFor: async (_target: string, _room: () => number, taker: typeof take) => {
      take = taker;
    },
    birth: async () => "1",
    hasJob: async () => true,
    hasResult: async () => false,
  };
  const silent = new Proxy(broker, {
    get: (own, name) => Reflect.get(own, name) ?? ready,
  }) as unknown as BridgeOptions["broker"];
  const control = openTrays(tree.control, { durability: "process" });
  const accept = { agents: ["coder"], fields: [] };
  const machine = new MachineFiles({ stateDir: tree.dir, trays, control, accept });
  const costs = new OriginCosts(tree);
  const settings = DEFAULT_SETTINGS;
  const origin = new OriginFiles({ trays, settings, telemetry, tree: TREE, costs });
  const { prices } = settings;
  const runs = new RunsWriter({ origin, costs, prices, write: runsFile(tree) });
  const bridge = new Bridge({
    name: "laptop",
    tree: TREE,
    origin,
    machine,
    broker: silent,
    sends: true,
    serves: [],
    room: () => ({ slots: 4 }),
    isPaused: () => false,
    isDraining: () => false,
    drain: () => {},
    program: "1.2.3",
    ackWaitMs: 3000,
    agentOf: () => "coder",
    machines: new Machines(3000),
    logs: new LocalLogs(tree),
    publish: (view) => runs.update(view, performance.now()),
    tell: () => {},
    ...more,
  });
  onTestFinished(async () => {
    await bridge.stop();
    telemetry.close();
  });
  return {
    tree,
    trays,
    bridge,
    machine,
    origin,
    published,
    results,
    broker,
    beats,
    /** The servers give a job to this machine. */
    deliver: (job: Received) => take(job),
    /** A machine says what it has. */
    hear: (beat: Beat) => hear(encodeMessage(beat), beat.machine),
    /** A task waits for its result. */
    hold: (id: string, submission = "s") => {
      const path = join(trays.processing, `${id}@${submission}.1~hold-cluster-gpu.json`);
      fs.writeFileSync(path, JSON.stringify({ id, agent: "far", prompt: "?" }));
    },
  };
}
