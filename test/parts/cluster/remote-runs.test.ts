/** How far a run at another machine is, what it says and what it costs: as its machine reads it, and as it is seen at home. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import { CostSums } from "../../../src/agents/cost-sums.ts";
import { renderTask } from "../../../src/cli/commands/show.ts";
import { formatName, runOf } from "../../../src/core/names.ts";
import { costsOf, type StateTree } from "../../../src/core/state-tree.ts";
import { ownerSequence } from "../../../src/host/identity.ts";
import { fileOfDay } from "../../../src/journal/daily.ts";
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { begunOf } from "../../../src/parts/cluster/protocol/begun.ts";
import {
  BadMessage,
  beatsOf,
  decodeBeat,
  encodeMessage,
} from "../../../src/parts/cluster/protocol/message-codec.ts";
import {
  BEAT_DISPATCHES_MAX,
  type BeatEntry,
  type Result,
  type RunCost,
  type RunNews,
  SAID_CHARS_MAX,
} from "../../../src/parts/cluster/protocol/messages.ts";
import { News } from "../../../src/parts/cluster/protocol/news.ts";
import { LocalRuns } from "../../../src/parts/cluster/tree/local-runs.ts";
import { MachineFiles } from "../../../src/parts/cluster/tree/machine-files.ts";
import { learnTask } from "../../../src/view/know-task.ts";
import { OverviewReader } from "../../../src/view/overview-reader.ts";
import { takeSnapshot } from "../../../src/view/snapshot-reader.ts";
import { waitFor } from "../../support/wait-for.ts";
import { stubBridge, TREE } from "./stub-bridge.ts";

const dispatch = { tree: TREE, task: "t", submission: "s", attempt: 1 };
const ID = `${TREE}.t.s.1`;
const cost: RunCost = {
  kind: "claude",
  account: "default",
  model: "m",
  session_id: "abc",
  input_tokens: 100,
  cached_input_tokens: 10,
  output_tokens: 20,
  cost_usd_micro: 120_000,
  turns: 2,
  duration_ms: 5000,
  outcome: "running",
};
const run: RunNews = {
  ran_ms: 61_000,
  progress: { pct: 40, text: "halfway" },
  line: "tests 118/240",
  costs: [cost],
};

const linesIn = (path: string): CostRecord[] =>
  fs.existsSync(path)
    ? fs
        .readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as CostRecord)
    : [];

const costsToday = (tree: StateTree): CostRecord[] => linesIn(fileOfDay(costsOf(tree), Date.now()));

const runningCosts = (tree: StateTree): string[] => {
  const dir = join(tree.dir, "analytics", "running-costs");
  return fs.existsSync(dir) ? fs.readdirSync(dir).filter((name) => name.endsWith(".json")) : [];
};

test("at home it is seen by status, show and top, its cost counts, and is booked once", async () => {
  const { tree, bridge, hold, hear, origin } = stubBridge();
  fs.mkdirSync(join(tree.dir, "analytics", "running-costs"), { recursive: true });
  const left = { v: 1, owner: "cluster", record: { task_id: "old" } };
  fs.writeFileSync(
    join(tree.dir, "analytics/running-costs/s.1.cluster-x.json"),
    JSON.stringify(left),
  );
  hold("t");
  hold("u", "other");
  bridge.start();
  const other = { ...dispatch, task: "u", submission: "other" };
  hear({ machine: "box1", has: [{ dispatch, target: "gpu", run }] });
  hear({ machine: "box1", has: [{ dispatch: other, target: "gpu" }] });
  await waitFor(() => fs.existsSync(tree.remoteRuns), { what: "the runs" });
  const nowMs = Date.now();
  const { running, counts } = takeSnapshot(tree, nowMs);
  // One that only waits at the machine does not run.
  expect(counts).toMatchObject({ running: 0, elsewhere: 1, held: 1 });
  expect(running).toMatchObject([
    { id: "t", machine: "box1", progress: run.progress, last_line: run.line, verdict: "alive" },
  ]);
  const reader = new OverviewReader(tree);
  expect(reader.next(nowMs)).toMatchObject({
    running: [{ id: "t", machine: "box1", cost_usd_micro: 120_000, last_line: run.line }],
    cost: { today_usd_micro: 120_000 },
    slots: { busy: 0 },
  });
  reader.close();
  const known = (await learnTask(tree, "t")) ?? expect.fail("it is gone");
  const page = { colour: false, columns: 80, isTerminal: false };
  expect(renderTask(known, page).map((line) => line.replace(/ {2,}/, ": "))).toEqual(
    expect.arrayContaining([
      "progress: [########------------]  40 %  halfway",
      "machine: box1",
      "runs: since 1 min ago",
      "says: tests 118/240",
      "cost: $0.12 so far",
    ]),
  );
  expect(runningCosts(tree)).toEqual(["s.1.cluster-gpu.json"]);

  const end = {
    status: "completed" as const,
    output: "",
    verdict: "pass",
    verdict_reason: "",
    exit_code: 0,
    costs: [{ ...cost, outcome: "completed", cost_usd_micro: 200_000 }],
  };
  const result: Result = { dispatch, target: "gpu", machine: "box1", end };
  expect(await origin.settle(dispatch, result)).toBe(true);
  expect(costsToday(tree)).toMatchObject([
    { task_id: "t", agent: "far", account: "box1/default", lease: "s.1.cluster-gpu" },
  ]);
  await waitFor(() => runningCosts(tree).length === 0, { what: "its file to go" });
  // After a crash it may be there twice.
  const sums = new CostSums("task", {});
  for (const record of [...costsToday(tree), ...costsToday(tree)]) sums.add(record);
  expect(sums.total).toMatchObject({ runs: 1, cost_usd_micro: 200_000 });
});

test("the journal lines of a run at another machine name the group of its task, and those of a task without one name none", async () => {
  const { trays, origin, tree } = stubBridge();
  const ends = {
    completed: {
      status: "completed",
      output: "",
      verdict: "pass",
      verdict_reason: "",
      exit_code: 0,
    },
    again: {
      status: "failed",
      kind: "exit",
      code: "ErrExit",
      error: "x",
      exit_code: 1,
      signal: null,
    },
  } as const;
  for (const [n, end] of Object.values(ends).entries())
    for (const group of ["gpu", undefined]) {
      const task = `t${n}${group ?? ""}`;
      const path = join(trays.processing, `${task}@s${n}${group ?? ""}.1~hold-cluster-gpu.json`);
      fs.writeFileSync(path, JSON.stringify({ id: task, agent: "far", prompt: "?", group }));
      const dispatch = { tree: TREE, task, submission: `s${n}${group ?? ""}`, attempt: 1 };
      await origin.settle(dispatch, { dispatch, target: "gpu", machine: "box1", end });
    }
  const lines = fs
    .readFileSync(tree.events, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(new Set(lines.map(({ event }) => event))).toEqual(
    new Set(["assigned", "started", "completed", "retry_scheduled"]),
  );
  for (const { task_id: id, group } of lines)
    expect(group, id).toBe(String(id).endsWith("gpu") ? "gpu" : undefined);
});

test("a machine tells it as its pool and its agents write it, and sends only what is new", () => {
  const { tree, trays } = stubBridge();
  const lines = { lastLineOf: () => null, keepOnly: () => {} };
  const runs = new LocalRuns({ tree, prices: { m: { input_usd: 1, output_usd: 2 } }, lines });
  const control = openTrays(tree.control, { durability: "process" });
  const accept = { agents: ["coder"], fields: [] };
  const files = new MachineFiles({ stateDir: tree.dir, trays, control, accept, runs });
  files.saveNote(ID, { dispatch, target: "gpu", lease: "", state: "taken" });
  expect(files.news().size).toBe(0);
  const ready = { id: ID, submission: "z", attempt: 1, stage: "ready", token: "" } as const;
  fs.writeFileSync(join(trays.processing, formatName(ready)), "{}");
  expect(files.news().get(ID)).toEqual({ ran_ms: null, progress: null, line: null, costs: [] });
  const name = { ...ready, stage: "w", token: ownerSequence()() } as const;
  fs.renameSync(
    join(trays.processing, formatName(ready)),
    join(trays.processing, formatName(name)),
  );
  const dir = join(tree.runs, runOf(name));
  fs.mkdirSync(dir, { recursive: true });
  // Half of a pair at the very end, as it is cut.
  const long = `${"x".repeat(SAID_CHARS_MAX - 1)}😀`;
  fs.writeFileSync(join(dir, "stdout.log"), `::progress 40 halfway\n${long}\n`);
  const record = { at: 1, task_id: ID, run: runOf(name), agent: "coder", lease: "l", ...cost };
  const booked = { ...record, cost_usd_micro: null, duration_ms: -1, outcome: "completed" };
  const running = join(tree.dir, "analytics/running-costs/l.json");
  fs.mkdirSync(dirname(running), { recursive: true });
  fs.writeFileSync(running, JSON.stringify({ v: 1, owner: "x", record }));
  const news = files.news().get(ID) ?? expect.fail("no news");
  expect(news).toMatchObject({ progress: { pct: 40, text: "halfway" }, costs: [cost] });
  expect(news.ran_ms).toBeLessThan(60_000);
  expect(news.line).toBe(`${"x".repeat(SAID_CHARS_MAX - 1)}\uFFFD`);
  const beats = beatsOf("box1", [{ dispatch, target: "gpu", run: news }]);
  expect(
    decodeBeat(encodeMessage(beats[0] ?? expect.fail("no beat")), TREE, "box1").has,
  ).toHaveLength(1);

  const told = new News();
  expect([...told.refresh(files.news())]).toEqual([ID]);
  expect([...told.refresh(files.news())]).toEqual([]);
  fs.appendFileSync(running, " ");
  fs.writeFileSync(join(dir, "progress"), "50");

  // Priced by the settings here, since the program gave no price; a broken number does not keep the result.
  const journal = fileOfDay(costsOf(tree), Date.now());
  fs.writeFileSync(journal, `${JSON.stringify(booked)}\n${JSON.stringify(booked)}\n`);
  const settled = { task_id: ID, status: "completed", output: 1, attempts: 1 };
  fs.writeFileSync(join(trays.outbox, `${ID}_result.json`), JSON.stringify(settled));
  expect(files.endOf(ID)).toMatchObject({
    costs: [{ cost_usd_micro: 90 + 10 + 40, duration_ms: 0, outcome: "completed" }],
  });
  runs.close();
});

test("heartbeats of many runs are cut so that each can travel", () => {
  const text = "\u0001".repeat(SAID_CHARS_MAX);
  const long: RunNews = { ...run, line: text, progress: { pct: 1, text } };
  const has = Array.from(
    { length: BEAT_DISPATCHES_MAX + 1 },
    (_, n): BeatEntry => ({ dispatch: { ...dispatch, task: `t${n}` }, target: "gpu", run: long }),
  );
  const beats = beatsOf("box1", has);
  expect(beats.length).toBeGreaterThan(2);
  const read = beats.flatMap((beat) => decodeBeat(encodeMessage(beat), TREE, "box1").has);
  expect(read).toEqual(has);
  expect(
    beatsOf(
      "box1",
      has.map(({ dispatch: of, target }) => ({ dispatch: of, target })),
    ).length,
  ).toBe(2);
  expect(beatsOf("box1", [])).toEqual([]);
});

test.each<[string, object]>([
  ["a line that is too long", { line: "x".repeat(SAID_CHARS_MAX + 1) }],
  ["progress beyond 100", { progress: { pct: 101, text: "" } }],
  ["a cost below 0", { costs: [{ ...cost, cost_usd_micro: -1 }] }],
  ["more costs than a run has", { costs: Array.from({ length: 9 }, () => cost) }],
  ["a time that is none", { ran_ms: "1" }],
])("%s is refused", (_, more) => {
  const has = [{ dispatch, target: "gpu", run: { ...run, ...more } as RunNews }];
  expect(() => decodeBeat(encodeMessage({ machine: "box1", has }), TREE, "box1")).toThrow(
    BadMessage,
  );
});

test("a run began when its machine first said so; another machine begins it anew", () => {
  const first = begunOf(undefined, "box1", { ...run, ran_ms: 1000 }, 10_000);
  expect(first.beganMs).toBe(9000);
  const later = begunOf(first, "box1", { ...run, ran_ms: 3000 }, 12_400);
  expect(later.beganMs).toBe(9000);
  expect(begunOf(later, "box1", undefined, 13_000)).toBe(later);
  expect(begunOf(later, "box2", undefined, 13_000)).toMatchObject({
    machine: "box2",
    beganMs: null,
  });
  expect(begunOf(later, "box1", { ...run, ran_ms: 0 }, 90_000).beganMs).toBe(90_000);
});
