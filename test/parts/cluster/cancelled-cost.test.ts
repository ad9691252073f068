/** What a run at another machine has cost when its task is cancelled at home: it is told, booked at home, and in the record. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import { costsOf, type StateTree } from "../../../src/core/state-tree.ts";
import { fileOfDay } from "../../../src/journal/daily.ts";
import { dispatchId } from "../../../src/parts/cluster/protocol/dispatch.ts";
import { Machine } from "../../../src/parts/cluster/protocol/machine.ts";
import type { End, Result, RunCost } from "../../../src/parts/cluster/protocol/messages.ts";
import type { MachineTree, Note } from "../../../src/parts/cluster/protocol/ports.ts";
import { OriginCosts } from "../../../src/parts/cluster/tree/origin-costs.ts";
import { SpentToday } from "../../../src/view/spent-today.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { stubBridge, TREE } from "./stub-bridge.ts";

const DISPATCH = { tree: TREE, task: "t", submission: "s", attempt: 1 };
const ID = dispatchId(DISPATCH);
const COST: RunCost = {
  kind: "claude",
  account: "default",
  model: "m",
  session_id: "abc",
  input_tokens: 90_000,
  cached_input_tokens: 0,
  output_tokens: 10_000,
  cost_usd_micro: 120_000,
  turns: 2,
  duration_ms: 5000,
  outcome: "running",
};
const CANCELLED: End = {
  status: "failed",
  kind: "cancelled",
  code: "ErrCancelled",
  error: "cancelled",
  exit_code: null,
  signal: null,
  costs: [{ ...COST, cost_usd_micro: 150_000, outcome: "failed" }],
};

const RESULT: Result = { dispatch: DISPATCH, target: "gpu", machine: "box1", end: CANCELLED };
const RUN = { ran_ms: 61_000, progress: null, line: null, costs: [COST] };

const usdMicro = (tree: StateTree) => new SpentToday(tree, {}).look(Date.now()).today_usd_micro;

function booked(tree: StateTree): CostRecord[] {
  const path = fileOfDay(costsOf(tree), Date.now());
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as CostRecord);
}

/** The day's costs at home: while the task runs at a machine, when it has just been cancelled, and when the machine has told the end. */
async function costsAtHome(tell: (origin: ReturnType<typeof stubBridge>["origin"]) => void) {
  const { tree, trays, bridge, hold, hear, origin } = stubBridge();
  hold("t");
  bridge.start();
  hear({ machine: "box1", has: [{ dispatch: DISPATCH, target: "gpu", run: RUN }] });
  await waitFor(() => usdMicro(tree) === 120_000, { what: "the costs so far" });
  fs.rmSync(join(trays.processing, "t@s.1~hold-cluster-gpu.json"));
  const runs = () => JSON.parse(fs.readFileSync(tree.remoteRuns, "utf8")).runs as unknown[];
  await waitFor(() => runs().length === 0, { what: "the run to go from the list" });
  const afterCancel = usdMicro(tree);
  tell(origin);
  const running = join(tree.dir, "analytics/running-costs/s.1.cluster-gpu.json");
  if (booked(tree).length > 0)
    await waitFor(() => !fs.existsSync(running), { what: "its file to go" });
  return { tree, costs: [afterCancel, usdMicro(tree)] };
}

describe("at home", () => {
  test("the costs of a cancelled run stay in the sum of the day, and are booked when its machine tells the last ones", async () => {
    const { tree, costs } = await costsAtHome((origin) => origin.bookCosts(RESULT));
    expect(costs).toEqual([120_000, 150_000]);
    expect(booked(tree)).toMatchObject([
      { task_id: "t", agent: "far", account: "box1/default", lease: "s.1.cluster-gpu" },
    ]);
  });

  test("caught: a home that books nothing for a result that settles nothing", async () => {
    const { costs } = await costsAtHome(() => {});
    expect(costs).not.toEqual([120_000, 150_000]);
  });

  test("a bridge that starts later books what an earlier one has shown of it", () => {
    const { tree } = stubBridge();
    const run = { id: "t", submission: "s", attempt: 1, stage: "hold", token: "cluster-gpu" };
    const before = new OriginCosts(tree);
    const name = run as Parameters<OriginCosts["recordsOf"]>[0]["name"];
    const [record] = before.recordsOf({ name, agent: "far" }, "box1", [COST]);
    if (record === undefined) expect.fail("no record");
    before.show("s.1.cluster-gpu", record);
    new OriginCosts(tree).keepOnly(new Set());
    expect(booked(tree)).toMatchObject([{ task_id: "t", cost_usd_micro: 120_000 }]);
    expect(usdMicro(tree)).toBe(120_000);
  });

  test("the record says where the run was cancelled", async () => {
    const pool = newPool({
      config: `${QUICK_CONFIG}
cluster: {servers: ["nats://127.0.0.1:1"], name: laptop}
agents: [{name: far, kind: remote, where: gpu}]`,
    });
    await pool.start();
    for (const id of ["begun", "sent"]) {
      const path = join(pool.processing, `${id}@s.1~hold-cluster-gpu.json`);
      fs.writeFileSync(path, JSON.stringify({ id, agent: "far", prompt: "?" }));
    }
    fs.mkdirSync(join(pool.state, "cluster"), { recursive: true });
    const run = {
      id: "begun",
      lease: "s.1.cluster-gpu",
      machine: "box1",
      target: "gpu",
      began_ms: 1_700_000_000_000,
      progress: null,
      last_line: null,
      cost_usd_micro: null,
    };
    const runs = [run, { ...run, id: "other", lease: "x.1.cluster-gpu" }];
    fs.writeFileSync(join(pool.state, "cluster/runs.json"), JSON.stringify({ owner: "x", runs }));
    for (const id of ["begun", "sent"]) await pool.run(["cancel", id, "--wait"]);
    const begun = await pool.error("begun");
    expect(begun).toMatchObject({
      error: "cancelled while it ran at box1",
      machine: "box1",
      attempts: 1,
      last_attempt_at: 1_700_000_000,
    });
  });
});

describe("a machine", () => {
  /** What it tells of a run that it was told to stop. @param Kind the protocol, perhaps a broken one */
  async function told(Kind: typeof Machine) {
    let note: Note | undefined = {
      dispatch: DISPATCH,
      target: "gpu",
      lease: "1 x",
      state: "taken",
    };
    let place: "unsettled" | "settled" = "unsettled";
    const results: Result[] = [];
    const tree = {
      note: () => note,
      saveNote: (_id: string, next: Note) => {
        note = next;
      },
      removeNote: () => {
        note = undefined;
      },
      placeOf: () => place,
      endOf: () => CANCELLED,
      cancel: async () => {},
    } as unknown as MachineTree;
    const broker = {
      publishResult: async (result: Result) => void results.push(result),
      finishJob: async () => {},
      renew: async () => {},
    };
    const over = { done: async () => {}, later: async () => {} };
    const machine = new Kind({ name: "box1", tree, broker, nowMs: () => 0, ackWaitMs: 3000 });
    await machine.onOver(ID, over);
    place = "settled";
    await machine.report(ID);
    const isKept = note !== undefined;
    await machine.onOver(ID, over);
    return { costs: results.flatMap(({ end }) => ("costs" in end ? end.costs : [])), isKept, note };
  }

  test("tells the costs of a run that it was told to stop, until home has them", async () => {
    expect(await told(Machine)).toEqual({ costs: CANCELLED.costs, isKept: true, note: undefined });
  });

  test("caught: one that forgets a run with the order to stop it", async () => {
    class Forgetful extends Machine {
      override async report(id: string): Promise<boolean> {
        if (this["options"].tree.note(id)?.state === "over") this["forget"](id);
        return false;
      }
    }
    expect((await told(Forgetful)).costs).toEqual([]);
  });
});
