/** Two state trees, a real server between them: a task of the one runs at the other, and settles where it is from. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DEFAULT_SETTINGS } from "../../../../src/core/settings.ts";
import { stateTree } from "../../../../src/core/state-tree.ts";
import type { Task } from "../../../../src/core/task.ts";
import { ownerSequence } from "../../../../src/host/identity.ts";
import { Telemetry } from "../../../../src/journal/telemetry.ts";
import { claimFromInbox, hold } from "../../../../src/mailbox/claim/claim.ts";
import { openTrays } from "../../../../src/mailbox/files/trays.ts";
import { Bridge } from "../../../../src/parts/cluster/bridge.ts";
import { NatsBroker } from "../../../../src/parts/cluster/nats/broker.ts";
import { loadNats } from "../../../../src/parts/cluster/nats/packages.ts";
import { clusterGate } from "../../../../src/parts/cluster/protocol/dispatch.ts";
import { MachineFiles } from "../../../../src/parts/cluster/tree/machine-files.ts";
import { OriginFiles } from "../../../../src/parts/cluster/tree/origin-files.ts";
import { treeName } from "../../../../src/parts/cluster/tree/tree-name.ts";
import { newPool, type Pool, QUICK_CONFIG, readJson } from "../../../support/pool.ts";
import { endOfFile, tempDir } from "../../../support/temp-dir.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { CACHE } from "./found.ts";
import { Server } from "./server.ts";

const ACK_WAIT_MS = 3000;
const onEnd = endOfFile();
let server: Server;

beforeAll(async () => {
  server = await Server.start(tempDir(onEnd));
  onEnd(() => server.kill());
});

/** The agent of a machine: it appends a line to `runs`, then does what the prompt says. */
const AGENT = `
agents:
  - {name: coder, kind: exec, program: sh, args: [-c, 'echo "$MAILCHUTE_TASK_ID" >> "$RUNS"; sh "$0"', SCRIPT]}
`;

interface Side {
  pool: Pool;
  told: string[];
  /** A bridge of this tree; it ends with the test. */
  bridge(serves?: readonly string[]): Promise<Bridge>;
}

let names = 0;

function newSide(script = "true"): Side {
  const name = `m${++names}`;
  const pool = newPool();
  const path = join(pool.dir, "agent.sh");
  fs.writeFileSync(path, script);
  fs.mkdirSync(pool.state, { recursive: true });
  const agent = AGENT.replace("SCRIPT", path).replace("$RUNS", join(pool.dir, "runs"));
  fs.writeFileSync(join(pool.state, "config.yaml"), `${QUICK_CONFIG}${agent}`);
  const told: string[] = [];
  const bridge = async (serves: readonly string[] = []): Promise<Bridge> => {
    const tree = treeName(pool.state);
    const options = { durability: "process" } as const;
    const trays = openTrays(pool.mailbox, options);
    const paths = stateTree(pool.state);
    const telemetry = new Telemetry(
      { events: paths.events, leases: paths.leases },
      "bridge",
      DEFAULT_SETTINGS.lease_ttl_ms,
      trays.clock,
    );
    const broker = await NatsBroker.connect(loadNats(CACHE), {
      servers: [server.url],
      name,
      tree,
      replicas: 1,
      ackWaitMs: ACK_WAIT_MS,
      onTrouble: (error) => told.push(String(error)),
    });
    const settings = {
      ...DEFAULT_SETTINGS,
      retry: { max_attempts: 2, backoff_ms: 1, backoff_max_ms: 1 },
    };
    const made = new Bridge({
      name,
      tree,
      broker,
      origin: new OriginFiles({ trays, settings, telemetry, tree }),
      machine: new MachineFiles({
        stateDir: pool.state,
        trays,
        control: openTrays(paths.control, options),
        accept: { agents: ["coder"], fields: [] },
      }),
      serves,
      slots: 4,
      ackWaitMs: ACK_WAIT_MS,
      agentOf: (task) => task.agent ?? "coder",
      tell: (message) => told.push(message),
    });
    made.start();
    onTestFinished(() => made.stop());
    return made;
  };
  return { pool, told, bridge };
}

/** As a worker leaves a task of an agent that is elsewhere. */
function holdFor(target: string, { pool }: Side, task: Task): void {
  const trays = openTrays(pool.mailbox, { durability: "process" });
  fs.writeFileSync(join(pool.inbox, `${task.id}.json`), JSON.stringify(task));
  const claim = claimFromInbox(trays, task.id, 1, ownerSequence()()) ?? expect.fail("no claim");
  if (hold(trays, claim, clusterGate(target)) === undefined) expect.fail("not held");
}

const runsAt = ({ pool }: Side): string[] => {
  const path = join(pool.dir, "runs");
  return fs.existsSync(path) ? fs.readFileSync(path, "utf8").trim().split("\n") : [];
};

const recordAt = ({ pool }: Side, id: string) =>
  readJson<Record<string, unknown>>(join(pool.outbox, `${id}_result.json`)) ??
  readJson<Record<string, unknown>>(join(pool.failed, `${id}_error.json`));

describe("a task that is held for the cluster", () => {
  test("runs once at a machine that serves its target, and settles at home; nothing is left over", async () => {
    const [a, b] = [newSide(), newSide('echo \'<result>{"status":"pass","n":1}</result>\'')];
    await b.pool.start();
    await a.bridge();
    await b.bridge(["gpu"]);
    for (const id of ["one", "two", "three"])
      holdFor("gpu", a, { id, agent: "coder", prompt: "?", payload: { id } });
    for (const id of ["one", "two", "three"]) {
      const record = await waitFor(() => recordAt(a, id), { what: `the record of ${id}` });
      expect(record).toMatchObject({ task_id: id, status: "completed", attempts: 1, exit_code: 0 });
      expect(record["task"]).toMatchObject({ id, payload: { id } });
    }
    expect(runsAt(b)).toHaveLength(3);
    const jobs = join(b.pool.state, "cluster/jobs");
    await waitFor(() => fs.readdirSync(jobs).every((file) => !file.endsWith(".json")), {
      what: "the receipts",
    });
    expect(fs.readdirSync(a.pool.processing)).toEqual([]);
    expect([...a.told, ...b.told]).toEqual([]);
  });
});
