/** What a bridge knows of other machines, how many tasks it sends for that, and what it and the supervisor say about it. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SupervisorDocument } from "../../../src/core/documents.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { gatesOf } from "../../../src/parts/cluster/gate-text.ts";
import { Machines, mayBeSent } from "../../../src/parts/cluster/protocol/machines.ts";
import {
  BadMessage,
  decodeReport,
  encodeMessage,
} from "../../../src/parts/cluster/protocol/message-codec.ts";
import type { MachineReport } from "../../../src/parts/cluster/protocol/messages.ts";
import { StatusWriter } from "../../../src/parts/cluster/status-writer.ts";
import {
  type BridgeDocument,
  bridgeDocumentPath,
  bridgeWriter,
  readBridge,
  type Told,
} from "../../../src/parts/cluster/tree/bridge-document.ts";
import { roomOf, whyStopped } from "../../../src/parts/cluster/tree/pool-room.ts";
import { findObstacles } from "../../../src/view/obstacles.ts";
import type { SupervisorView } from "../../../src/view/snapshot.ts";
import { takeSnapshot } from "../../../src/view/snapshot-reader.ts";
import { whyAt } from "../../../src/view/supervisor.ts";
import { newPool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";

const GONE_MS = 30_000;

const report = (machine: string, more: Partial<MachineReport> = {}): MachineReport => ({
  machine,
  program: "1.2.3",
  serves: ["gpu"],
  room: 4,
  open: 1,
  is_draining: false,
  load: 0.5,
  cpus: 8,
  ...more,
});

const self = () => ({
  version: "1.2.3",
  machine: "laptop",
  tree: "laptop.abcd2345",
  servers: ["nats://a"],
  is_connected: true,
});

describe("the room for a target", () => {
  test("is that of all machines which serve it and were heard", () => {
    const machines = new Machines(GONE_MS);
    machines.take(report("a"), 0);
    machines.take(report("b", { room: 2, serves: ["gpu", "any"] }), 20_000);
    machines.take(report("laptop", { serves: [] }), 20_000);
    expect(machines.roomFor("gpu", 20_000)).toBe(6);
    expect(machines.roomFor("any", 20_000)).toBe(2);
    // By its own name a machine is meant alone, if it works for others.
    expect(machines.roomFor("b", 20_000)).toBe(2);
    expect(machines.roomFor("laptop", 20_000)).toBe(0);
    expect(machines.roomFor("gpu", GONE_MS + 1)).toBe(2);
    machines.take(report("a", { room: 0 }), GONE_MS + 1);
    expect(machines.roomFor("gpu", GONE_MS + 1)).toBe(2);
    expect(machines.list(GONE_MS + 1, 15_000).map(({ machine }) => machine)).toEqual([
      "a",
      "b",
      "laptop",
    ]);
    expect(machines.list(100_000, 75_000).map(({ machine }) => machine)).toEqual(["a"]);
  });

  test("lets half as much again be sent, so that a free slot finds its task", () => {
    expect([0, 1, 2, 4, 100].map(mayBeSent)).toEqual([0, 2, 3, 6, 150]);
  });
});

describe("a machine that takes no tasks", () => {
  const view = (state: SupervisorView["state"], more: Partial<SupervisorDocument> = {}, age = 0) =>
    ({ state, document: more, heartbeat_age_ms: age }) as SupervisorView;
  const stopped = { intake_stopped: { reason: "disk", free_files: 1, wanted_files: 9 } } as never;

  test.each<[string, string | undefined, RegExp]>([
    [
      "has no pool",
      whyStopped(view("none"), 0),
      /^no supervisor runs on this state tree: mailchute run/,
    ],
    ["has a stopped pool", whyStopped(view("stopped"), 0), /^no supervisor runs/],
    ["has a pool that died", whyStopped(view("dead"), 0), /^the supervisor .* died/],
    ["has a pool that ends", whyStopped(view("stopping"), 0), /^the supervisor is stopping/],
    ["has a full disk", whyStopped(view("running", stopped), 0), /^intake stopped: disk/],
    ["has a pool that hangs", whyStopped(view("running", {}, 30_000), 0), /^its pool hangs/],
    ["accepts nothing", roomOf({ slots: 4, accept: [] }, { slots: 2 }).why, /^it accepts no agent/],
    [
      "has no slots for others",
      roomOf({ slots: 0, accept: ["x"] }, { slots: 2 }).why,
      /slots is 0/,
    ],
  ])("says so when it %s", (_, why, expected) => {
    expect(why).toMatch(expected);
  });

  test("says nothing when it takes some", () => {
    expect(whyStopped(view("running"), 0)).toBeUndefined();
    expect(roomOf({ slots: 4, accept: ["x"] }, { slots: 9 })).toEqual({ slots: 4 });
  });

  /** The document of a bridge that knows four machines without room, and its gate for the target. */
  const toldOf = (machines: Machines): { document: Told; why: string | undefined } => {
    machines.take(report("a", { room: 0, why: "its pool is paused: mailchute resume" }), 0);
    machines.take(report("b", { room: 0, is_draining: true }), 0);
    machines.take(report("c", { room: 0 }), 0);
    machines.take(report("d", { room: 0, serves: [] }), 0);
    const told: Told[] = [];
    const write = (one: Told): void => void told.push(one);
    const status = new StatusWriter({ self, machines, targets: ["gpu"], write });
    status.update({ held: [], begun: new Map(), unanswered: new Map() }, 300, 300);
    const [document] = told;
    if (document === undefined) expect.fail("nothing was written");
    const bridge = { ...document, owner: "", pid: 1 };
    const target = { name: "gpu", agents: ["far"], groups: [], sent: 0, isFull: true, bridge };
    return { document, why: gatesOf(target)[0]?.why };
  };
  const NAMED =
    /^no machine with free slots serves gpu \(a: its pool is paused: mailchute resume; b: it is drained; c: it has no slots\)/;

  test("is named with its reason to the tree whose tasks wait, and in the list", async () => {
    const { document, why } = toldOf(new Machines(GONE_MS));
    expect(why).toMatch(NAMED);
    const pool = newPool();
    fs.mkdirSync(join(pool.state, "cluster"), { recursive: true });
    bridgeWriter(pool.state)(document);
    const { stdout } = await pool.run(["cluster", "ls"]);
    expect(stdout).toContain("a takes no tasks: its pool is paused");
  });

  test("caught: a list that looks at the slots alone", () => {
    class SlotsAlone extends Machines {
      override take({ why: _, ...report }: MachineReport, nowMs: number): void {
        super.take({ ...report, is_draining: false }, nowMs);
      }
    }
    const { why } = toldOf(new SlotsAlone(GONE_MS));
    expect(why).toContain("no machine with free slots serves gpu (a: it has no slots");
    expect(why).not.toMatch(NAMED);
  });
});

test("two machines of one name are noticed, as long as both are heard", () => {
  const machines = new Machines(GONE_MS);
  const twinsOf = (nowMs: number): string[][] =>
    machines.list(nowMs, 100_000).map((one) => machines.twins(one, nowMs));
  machines.take(report("a", { tree: "a.tree0001" }), 0);
  machines.take(report("b", { tree: "b.tree0001" }), 0);
  expect(twinsOf(0)).toEqual([[], []]);
  for (const ms of [100, 200]) {
    machines.take(report("a", { tree: "a.tree0002" }), ms);
    machines.take(report("a", { tree: "a.tree0001" }), ms + 50);
  }
  expect(twinsOf(300)).toEqual([["a.tree0002"], []]);
  // The other one has got a new name.
  machines.take(report("a", { tree: "a.tree0001" }), 200 + GONE_MS + 1);
  expect(twinsOf(200 + GONE_MS + 1)).toEqual([[], []]);
});

test.each<[string, Partial<Record<keyof MachineReport, unknown>>, RegExp]>([
  ["of another machine", { machine: "b" }, /another machine/],
  ["with a name that is none", { machine: "a b" }, /machine/],
  ["with a target that is a wildcard", { serves: [">"] }, /serves/],
  ["with too many targets", { serves: Array.from({ length: 65 }, () => "x") }, /serves/],
  ["with less than no slots", { room: -1 }, /room/],
  ["without a load", { load: undefined }, /load/],
])("a report %s is refused", (_, more, why) => {
  const bytes = encodeMessage(report("a", more as Partial<MachineReport>));
  expect(() => decodeReport(bytes, "a")).toThrow(BadMessage);
  expect(() => decodeReport(bytes, "a")).toThrow(why);
  expect(decodeReport(encodeMessage(report("a")), "a")).toEqual(report("a"));
});

test("the document of a bridge is replaced when something has changed, and now and then", () => {
  const machines = new Machines(GONE_MS);
  machines.take(report("box1"), 0);
  const written: Told[] = [];
  const status = new StatusWriter({
    self,
    machines,
    targets: ["gpu", "tpu"],
    write: (told) => void written.push(told),
  });
  const dispatch = { tree: "laptop.abcd2345", task: "t", submission: "s", attempt: 1 };
  const held = [{ id: "laptop.abcd2345.t.s.1", dispatch, target: "gpu" }];
  const unanswered = new Map([["gone.abcd2345", 2]]);
  status.update({ held, begun: new Map(), unanswered: new Map() }, 0, 0);
  status.update(
    {
      held,
      begun: new Map([
        ["laptop.abcd2345.t.s.1", { machine: "box1", beganMs: null, run: undefined }],
      ]),
      unanswered,
    },
    100,
    100,
  );
  expect(written).toHaveLength(1);
  expect(written[0]?.targets).toEqual({
    gpu: { room: 4, may_be_sent: 6, sent: 1, begun: 0 },
    tpu: { room: 0, may_be_sent: 0, sent: 0, begun: 0 },
  });
  const begun = new Map([
    ["laptop.abcd2345.t.s.1", { machine: "box1", beganMs: null, run: undefined }],
  ]);
  status.update({ held, begun, unanswered }, 300, 300);
  status.update({ held, begun, unanswered }, 600, 600);
  expect(written).toHaveLength(2);
  expect(written[1]).toMatchObject({ targets: { gpu: { begun: 1 } }, machines: [{ ours: 1 }] });
  expect(written[1]?.unanswered).toEqual({ "gone.abcd2345": 2 });
  expect(written[1]?.begun).toEqual([{ id: "t", target: "gpu", machine: "box1" }]);
  status.update({ held, begun, unanswered }, 4000, 4000);
  expect(written).toHaveLength(3);
});

test("a document counts as long as its bridge lives and writes", () => {
  const dir = tempDir();
  expect(readBridge(dir, Date.now())).toBeUndefined();
  fs.mkdirSync(join(dir, "cluster"));
  const told = { ...self(), at: "", machines: [], targets: {}, begun: [] };
  bridgeWriter(dir)(told);
  expect(readBridge(dir, Date.now())).toMatchObject({ pid: process.pid, ...told });
  expect(readBridge(dir, Date.now() + 60_000)).toBeUndefined();
  const path = bridgeDocumentPath(dir);
  const text = fs.readFileSync(path, "utf8");
  const { owner } = JSON.parse(text) as { owner: string };
  const [place = "", , start = ""] = owner.split("-");
  for (const bad of [
    "",
    "[]",
    "{}",
    '{"owner": "x", "machines": [1], "servers": [], "targets": {}, "begun": []}',
  ]) {
    fs.writeFileSync(path, bad);
    expect(readBridge(dir, Date.now()), bad).toBeUndefined();
  }
  // No process has this pid.
  fs.writeFileSync(path, text.replace(owner, `${place}-${(0x7fffffff).toString(36)}-${start}-1`));
  expect(readBridge(dir, Date.now())).toBeUndefined();
});

describe("why tasks of a target wait", () => {
  const bridge: BridgeDocument = {
    ...self(),
    owner: "",
    pid: 1,
    at: "",
    machines: [],
    targets: { gpu: { room: 4, may_be_sent: 6, sent: 6, begun: 4 } },
    begun: [
      { id: "t", target: "gpu", machine: "box1" },
      { id: "u", target: "tpu", machine: "box2" },
    ],
  };
  const groups: string[] = [];
  const state = { name: "gpu", agents: ["far"], groups, sent: 6, isFull: true, bridge };

  test.each<[string, Partial<typeof state> | { bridge: undefined }, string[], RegExp]>([
    ["no bridge", { bridge: undefined }, ["far"], /^no bridge runs here/],
    ["no server", { bridge: { ...bridge, is_connected: false } }, ["far"], /cannot be reached/],
    ["no machine", { bridge: { ...bridge, targets: {} } }, ["far"], /^no machine with free slots/],
    [
      "other settings than those of the servers",
      { bridge: { ...bridge, trouble: "ack_wait_ms is 1 here and 2 at the servers" } },
      ["far"],
      /^no results come from gpu: ack_wait_ms is 1 here/,
    ],
    ["busy machines", {}, ["far"], /have 4 slots; 6 sent, 4 of them begun$/],
    ["results", { isFull: false }, [], /6 sent, 4 of them begun$/],
  ])("for %s", (_, more, agents, why) => {
    expect(gatesOf({ ...state, ...more })[0]).toMatchObject({
      gate: "cluster-gpu",
      agents,
      why: expect.stringMatching(why),
    });
  });

  test("and only what is wrong counts as an obstacle", () => {
    const isWell = (more: Partial<typeof state>): unknown =>
      gatesOf({ ...state, ...more })[0]?.is_well;
    expect(isWell({})).toBe(true);
    expect(isWell({ isFull: false })).toBe(true);
    expect(isWell({ bridge: { ...bridge, is_connected: false } })).toBeUndefined();
    expect(isWell({ bridge: { ...bridge, targets: {} } })).toBeUndefined();
    const snapshot = takeSnapshot(stateTree(tempDir()), Date.now());
    const obstacles = (more: Partial<typeof state>): string[] => {
      const gates = gatesOf({ ...state, ...more, groups: ["render", "train"] });
      const document = { gates } as unknown as SupervisorDocument;
      const supervisor: SupervisorView = { state: "running", document, heartbeat_age_ms: 0 };
      return findObstacles({ ...snapshot, supervisor }).map(({ what }) => what);
    };
    expect(obstacles({})).toEqual([]);
    expect(obstacles({ bridge: { ...bridge, targets: {} } })).toEqual([
      expect.stringMatching(/^no machine with free slots serves gpu/),
    ]);
  });

  test("is said of its groups, too, as long as they wait", () => {
    const groupsAt = (more: Partial<typeof state>): unknown[] =>
      gatesOf({ ...state, ...more, groups: ["render"] }).map(({ group }) => group);
    expect(groupsAt({})).toEqual([undefined, "render"]);
    expect(groupsAt({ bridge: { ...bridge, targets: {} } })).toEqual([undefined, "render"]);
    expect(groupsAt({ isFull: false })).toEqual([undefined]);
  });

  test("names the machine of each task", () => {
    const gate = gatesOf(state)[0] ?? expect.fail("no gate");
    expect(gate.tasks).toEqual({ t: "the machine box1 has it" });
    expect(whyAt(gate, "t")).toBe("the machine box1 has it");
    for (const id of ["u", "__proto__", "constructor"]) expect(whyAt(gate, id)).toBe(gate.why);
  });

  test("is not said when nothing waits", () => {
    expect(gatesOf({ ...state, sent: 0, isFull: false })).toEqual([]);
  });
});
