/** What one screen shows of a task, of money, and of alerts: from the files of a made tree. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { RunningCosts } from "../../src/agents/budget/running-costs.ts";
import type { CostRecord } from "../../src/agents/cost-records.ts";
import { formatName, type ProcessingName, runOf } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS } from "../../src/core/settings.ts";
import { costsOf, type StateTree } from "../../src/core/state-tree.ts";
import { ownerSequence } from "../../src/host/identity.ts";
import { fileOfDay } from "../../src/journal/daily.ts";
import { LatestAlerts } from "../../src/view/latest-alerts.ts";
import { RunTails } from "../../src/view/run-tails.ts";
import { SpentToday } from "../../src/view/spent-today.ts";
import { readTaskPage } from "../../src/view/task-page.ts";
import { waitFor } from "../support/wait-for.ts";
import { newTree } from "./many-files.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

function write(path: string, content: string | object): void {
  fs.mkdirSync(dirname(path), { recursive: true });
  fs.writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}

/** A claim of this process, with its run's folder. */
function claim(tree: StateTree, id: string, more: Partial<ProcessingName> = {}): string {
  const token = ownerSequence()();
  const name: ProcessingName = {
    id,
    submission: "abcdefgh260301",
    attempt: 2,
    stage: "w",
    token,
    ...more,
  };
  write(join(tree.mailbox, "processing", formatName(name)), {
    id,
    title: `title of ${id}`,
    exec: ["x"],
    max_attempts: 3,
    group: "web",
    metadata: { dependencies: ["a", "b"] },
  });
  return join(tree.runs, runOf({ ...name, stage: "w", token }));
}

describe("the page of a task", () => {
  it("that runs has its run, files and facts", () => {
    const tree = newTree();
    const run = claim(tree, "one");
    write(join(run, "stdout.log"), "hello\n");
    expect(readTaskPage(tree, "one")).toMatchObject({
      state: "running",
      title: "title of one",
      attempt: 2,
      attempts_max: 3,
      group: "web",
      after: ["a", "b"],
      error: null,
      run_dir: run,
      files: [{ name: "stdout.log", bytes: 6 }],
    });
  });

  it("that waits for its next run has the folder of the last one", () => {
    const tree = newTree();
    claim(tree, "two", { stage: "ready", token: "" });
    const earlier = join(tree.runs, "2026-03-01", "two@abcdefgh260301.1.R1");
    write(join(earlier, "stderr.log"), "bad\n");
    expect(readTaskPage(tree, "two")).toMatchObject({ state: "ready", run_dir: earlier });
  });

  it("that failed has its error, and its run where the record says", () => {
    const tree = newTree();
    const run = join(tree.runs, "2026-03-01", "three@abcdefgh260301.1.R1");
    write(join(run, "stdout.log"), "");
    write(join(tree.mailbox, "failed", "three_error.json"), {
      task_id: "three",
      status: "failed",
      kind: "exit",
      error: "it broke",
      attempts: 3,
      run: "2026-03-01/three@abcdefgh260301.1.R1",
      task: { title: "Three" },
    });
    expect(readTaskPage(tree, "three")).toMatchObject({
      state: "failed",
      title: "Three",
      attempt: 3,
      error: { kind: "exit", text: "it broke" },
      run_dir: run,
    });
  });

  it("is missing for an id that no tray has, or that leads elsewhere", () => {
    const tree = newTree();
    for (const id of ["none", "", "../../etc/passwd", "a\0b"])
      expect(readTaskPage(tree, id)).toBeUndefined();
  });

  it("never follows a record out of the folder of runs", () => {
    const tree = newTree();
    write(join(tree.mailbox, "failed", "evil_error.json"), {
      task_id: "evil",
      status: "failed",
      run: "../../../etc",
    });
    expect(readTaskPage(tree, "evil")).toMatchObject({ run_dir: null, files: [] });
  });
});

it("what a run says is its progress and its last line, without the marks", async () => {
  const dir = join(newTree().dir, "run");
  const tails = new RunTails();
  expect(tails.look(dir)).toEqual({ progress: undefined, lastLine: null });
  write(join(dir, "stdout.log"), "one\n10 %\r20 %\n::progress 40 half\n\n");
  const found = await waitFor(
    () => (tails.look(dir).lastLine === null ? undefined : tails.look(dir)),
    { what: "the new file" },
  );
  expect(found).toEqual({ progress: { pct: 40, text: "half" }, lastLine: "20 %" });
  expect(tails.last(dir)).toEqual(found);
  tails.keepOnly(new Set());
  expect(tails.last(dir).lastLine).toBeNull();
});

it("today's money counts each run once, and with it what runs have used so far", () => {
  const tree = newTree();
  const record = (n: number, cost: number): CostRecord => ({
    at: NOW_MS / 1000,
    task_id: `t-${n}`,
    run: `r-${n}`,
    lease: `abc.${n}`,
    agent: "coder",
    kind: "claude",
    account: "default",
    model: null,
    session_id: "s",
    input_tokens: 1,
    cached_input_tokens: 0,
    output_tokens: 1,
    cost_usd_micro: cost,
    outcome: "completed",
  });
  const spent = new SpentToday(tree, DEFAULT_SETTINGS.prices);
  onTestFinished(() => spent.close());
  expect(new SpentToday(tree, DEFAULT_SETTINGS.prices).look(NOW_MS).today_usd_micro).toBeNull();
  const lines = [record(1, 500), record(1, 500), record(2, 70)].map(
    (one) => `${JSON.stringify(one)}\n`,
  );
  write(fileOfDay(costsOf(tree), NOW_MS), lines.join(""));
  write(fileOfDay(costsOf(tree), NOW_MS - 86_400_000), `${JSON.stringify(record(9, 9_000_000))}\n`);
  const owner = ownerSequence()();
  const booked = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costUsdMicro: null };
  for (const one of [record(2, 70), record(3, 4000)])
    new RunningCosts(tree.dir).write(one.lease ?? "", {
      v: 1,
      owner,
      record: one,
      session_key: "k",
      booked,
    });
  const seen = spent.look(NOW_MS);
  expect(seen.today_usd_micro).toBe(4570);
  expect(seen.is_complete).toBe(true);
  expect([...seen.running]).toEqual([["abc.3", 4000]]);
});

it("alerts are the latest ones, without those that have lists of their own", () => {
  const tree = newTree();
  const line = (alert: string, message: string, t: number): string =>
    `${JSON.stringify({ alert, message, t })}\n`;
  write(
    tree.alerts,
    [
      line("trouble", "old", NOW_MS - 1000),
      line("task_failed", "told elsewhere", NOW_MS),
      "torn {\n",
      line("worker_died", "new", NOW_MS),
    ].join(""),
  );
  const alerts = new LatestAlerts(tree);
  expect(alerts.look(0).map(({ message }) => message)).toEqual(["new", "old"]);
  expect(alerts.look(NOW_MS).map(({ kind }) => kind)).toEqual(["worker_died"]);
});
