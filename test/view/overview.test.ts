/** The overview of state trees: rates, causes, what waits and why; and that it costs little, however many files there are. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { DoneRate } from "../../src/view/done-rate.ts";
import { FailureCausesReader } from "../../src/view/failure-causes.ts";
import { healthOf } from "../../src/view/make-overview.ts";
import type { Overview } from "../../src/view/overview.ts";
import { OverviewReader } from "../../src/view/overview-reader.ts";
import type { SupervisorView } from "../../src/view/snapshot.ts";
import { newPool, type Pool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";
import { fill, MANY, newTree, readsOf } from "./many-files.ts";

const NOW_MS = 1_772_366_400_000;
const MINUTE_MS = 60_000;

function readerOf(tree: ReturnType<typeof newTree>): OverviewReader {
  const reader = new OverviewReader(tree);
  onTestFinished(() => reader.close());
  return reader;
}

function writeFailed(dir: string, id: string, error: string, kind = "exit", task = {}): void {
  const record = {
    task_id: id,
    status: "failed",
    kind,
    error,
    attempts: 1,
    failed_at: 1_772_366_000,
    task,
  };
  fs.writeFileSync(join(dir, `${id}_error.json`), JSON.stringify(record));
}

describe("done in each minute", () => {
  const line = (minutesAgo: number, status = "completed"): string =>
    `${JSON.stringify({ event: "completed", task_id: "x", status, t: NOW_MS - minutesAgo * MINUTE_MS })}\n`;
  const metrics = (completed: number, failed: number, offset: number) => ({
    tasks: { completed, failed },
    journal: { ino: 7, offset },
  });

  it("is told by the journal again after a pause in which nobody looked", () => {
    const tree = newTree();
    fs.writeFileSync(tree.events, line(2));
    const { ino } = fs.statSync(tree.events);
    const at = (completed: number, offset: number) => ({
      ...metrics(completed, 0, offset),
      journal: { ino, offset },
    });
    const rate = new DoneRate(tree);
    expect(rate.look(at(0, 0), true, NOW_MS - 30 * MINUTE_MS).completed.at(-1)).toBe(0);
    fs.writeFileSync(tree.events, [line(20), line(2), line(2), line(1), line(0)].join(""));
    const size = fs.statSync(tree.events).size;
    const { completed } = rate.look(at(5, size), true, NOW_MS);
    // Caught: all that ended in half an hour in the minute of the next look, and none before.
    expect(completed.slice(-3)).toEqual([2, 1, 1]);
    expect(completed.at(-21)).toBe(1);
    expect(rate.look(at(7, size + 1), true, NOW_MS + 1000).completed.at(-1)).toBe(3);
  });

  it("comes from the journal, and a minute of which nothing is known is null", () => {
    const tree = newTree();
    fs.writeFileSync(
      tree.events,
      [line(70), line(59), line(2), line(2, "failed"), line(2), line(0)].join(""),
    );
    const { completed, failed } = new DoneRate(tree).look(null, false, NOW_MS);
    expect(completed).toHaveLength(60);
    expect(completed[0]).toBe(1);
    expect(completed.slice(1, 57)).toEqual(Array.from({ length: 56 }, () => null));
    expect(completed.slice(57)).toEqual([2, null, 1]);
    expect(failed.at(-3)).toBe(1);
  });

  it("goes on from the counts of the supervisor, and counts no event twice", () => {
    const tree = newTree();
    fs.writeFileSync(tree.events, line(0) + line(0));
    const ino = fs.statSync(tree.events).ino;
    const half = { ...metrics(1, 0, line(0).length), journal: { ino, offset: line(0).length } };
    const rate = new DoneRate(tree);
    // The second line is not in the counts yet.
    expect(rate.look(half, true, NOW_MS).completed.at(-1)).toBe(1);
    const whole = { ...half, ...metrics(2, 1, 2 * line(0).length) };
    expect(rate.look(whole, true, NOW_MS).completed.at(-1)).toBe(2);
    expect(rate.look(whole, true, NOW_MS).failed.at(-1)).toBe(1);
    const lastTwo = (fromMs: number, isCounting: boolean): (number | null)[] => {
      for (let ms = 5000; ms < MINUTE_MS; ms += 5000) rate.look(whole, true, fromMs + ms);
      return rate.look(whole, isCounting, fromMs + MINUTE_MS).completed.slice(-2);
    };
    expect(lastTwo(NOW_MS, true)).toEqual([2, 0]);
    // Without a supervisor nothing is known of the next minute.
    expect(lastTwo(NOW_MS + MINUTE_MS, false)).toEqual([0, null]);
  });

  it("the oldest minute of a long journal is left out, because only a part of it was read", () => {
    const tree = newTree();
    const pad = "p".repeat(2000);
    const long = (minutesAgo: number): string =>
      line(minutesAgo).replace('"x"', `"x","pad":"${pad}"`);
    fs.writeFileSync(tree.events, long(3).repeat(4200) + long(1).repeat(10));
    const { completed } = new DoneRate(tree).look(null, false, NOW_MS);
    expect(completed.slice(-4)).toEqual([null, null, 10, null]);
  });
});

describe("failures by cause", () => {
  it("groups the latest, reads each record once, and sees what came and went", async () => {
    const tree = newTree();
    const dir = join(tree.mailbox, "failed");
    for (let n = 0; n < 350; n++)
      writeFailed(dir, `sync-${n}`, `connect ECONNREFUSED 10.0.0.${n}:80`);
    writeFailed(dir, "slow", "it ran too long", "timeout", { title: "A slow one\nwith more" });
    const reader = new FailureCausesReader(tree);
    expect(reader.look()).toMatchObject({ is_all: false, grouped: 200 });
    const all = reader.look();
    expect(all).toMatchObject({ is_all: true, grouped: 351 });
    expect(all.titles).toEqual({ slow: "A slow one" });
    expect(all.causes.map(({ count, kind }) => [count, kind])).toEqual([
      [350, "exit"],
      [1, "timeout"],
    ]);
    expect((await readsOf(() => reader.look())).opened).toBe(0);
    fs.rmSync(join(dir, "slow_error.json"));
    writeFailed(dir, "new", "another thing");
    const later = await waitFor(
      () => {
        const found = reader.look();
        return found.causes.some(({ error }) => error === "another thing") ? found : undefined;
      },
      { what: "the new failure" },
    );
    expect(later.causes.map(({ kind }) => kind)).toEqual(["exit", "exit"]);
  });
});

it.each([
  ["running", 1000, "live", "live"],
  ["draining", 1000, "live", "live, draining"],
  ["running", 14_000, "silent", "silent: last heartbeat 14 s ago"],
  ["stopped", 200_000, "stopped", "stopped 3 min ago"],
  ["dead", 200_000, "dead", "dead: pid 7 is gone, last seen 3 min ago"],
  ["unknown", 1000, "unknown", "unknown: it runs on far, last seen 1 s ago"],
  ["none", null, "none", "no supervisor"],
] as const)("a supervisor that is %s, last seen %s ms ago, is %s", (state, age, health, text) => {
  const document = state === "none" ? null : { pid: 7, host: "far" };
  const view = { state, document, heartbeat_age_ms: age } as unknown as SupervisorView;
  expect(healthOf(view, NOW_MS)).toMatchObject({ state: health, text });
});

function groups({
  waiting,
}: Overview): Record<string, { count: number | undefined; ids: string[] }> {
  return Object.fromEntries(
    waiting.map(({ code, count, tasks }) => [
      code,
      { count: count?.count, ids: tasks.map(({ id }) => id).sort() },
    ]),
  );
}

async function overviewOf(pool: Pool): Promise<Overview> {
  return JSON.parse((await pool.run(["top", "--json"])).stdout) as Overview;
}

describe("what waits, and why", () => {
  it("without a supervisor waits for one", async () => {
    const pool = newPool();
    for (const id of ["a", "b"]) pool.drop(id, { exec: ["true"] });
    const seen = await overviewOf(pool);
    expect(seen.health.state).toBe("none");
    expect(groups(seen)).toEqual({ start: { count: 2, ids: ["a", "b"] } });
    expect(seen.waiting[0]).toMatchObject({
      text: "wait: no supervisor runs on this state tree",
      do: "mailchute run",
    });
    expect(seen.obstacles[0]).toMatchObject({ do: "mailchute run" });
  });

  it("at a full group stands there, not among those that wait for a slot", async () => {
    const pool = newPool({
      config:
        "workers: 4\ndurability: process\nlimits: {cuda: 3}\ngroups: {gpu: {slots: 1, limits: [cuda]}}\n",
    });
    await pool.start();
    const long = { title: "A long one", exec: ["sleep", "1000"], group: "gpu" };
    // More than the overview looks at one by one.
    for (let n = 0; n < 31; n++) pool.drop(`g${n}`, long);
    const seen = await waitFor(
      async () => {
        const one = await overviewOf(pool);
        const isFull = one.waiting[0]?.text.startsWith("wait: group") === true;
        return isFull && one.groups[0]?.waiting === 30 ? one : undefined;
      },
      { what: "the full group" },
    );
    const [full, ...others] = seen.waiting;
    expect(full).toMatchObject({
      text: "wait: group gpu: 1 of 1 running",
      count: { count: 30, is_exact: false },
    });
    expect(others).toEqual([]);
    expect(full?.tasks[0]).toMatchObject({ title: "A long one" });
    expect(seen.groups).toMatchObject([
      {
        kind: "group",
        name: "gpu",
        slots: 1,
        in_work: 1,
        limits: ["cuda"],
        why: "group gpu: 1 of 1 running",
        tasks: full?.tasks,
      },
      { kind: "limit", name: "cuda", slots: 3, in_work: 1, waiting: 30, why: null, tasks: [] },
    ]);
    await pool.run(["pause", "--wait"]);
    expect((await overviewOf(pool)).waiting.at(-1)).toMatchObject({
      count: { count: 30 },
      do: "mailchute resume",
    });
  });

  it("is told apart while a supervisor runs, and adds up to all", async () => {
    const pool = newPool({
      config:
        "workers: 1\ndurability: process\nsweep_ms: 200\nretry: {max_attempts: 2, backoff_ms: 600000, backoff_max_ms: 600000}\n",
    });
    await pool.start();
    pool.drop("again", { priority: 9, exec: ["false"] });
    await waitFor(() => pool.events().some(({ event }) => event === "retry_scheduled"), {
      what: "its first failure",
    });
    pool.drop("busy", {
      title: "Busy",
      max_attempts: 4,
      exec: ["sh", "-c", "echo hello; exec sleep 1000"],
    });
    pool.drop("child", { exec: ["true"], metadata: { dependencies: ["busy"] } });
    pool.drop("strange", { agent: "nobody", prompt: "x" });
    pool.drop("later", { exec: ["true"], not_before: Math.floor(Date.now() / 1000) + 3600 });
    for (const id of ["next-1", "next-2"]) pool.drop(id, { priority: -5, exec: ["true"] });
    const seen = await waitFor(
      async () => {
        const one = await overviewOf(pool);
        const { start, delayed } = groups(one);
        const hasSaid = one.running[0]?.last_line === "hello";
        return start?.count === 2 && delayed?.count === 2 && hasSaid ? one : undefined;
      },
      { what: "all of them" },
    );
    expect(groups(seen)).toMatchObject({
      unmatched: { count: 1, ids: ["strange"] },
      blocked: { count: 1, ids: ["child"] },
      delayed: { count: 2, ids: ["again", "later"] },
      start: { count: 2, ids: ["next-1", "next-2"] },
    });
    expect(seen.running).toMatchObject([
      { id: "busy", title: "Busy", attempt: 1, attempts_max: 4, is_alive: true },
    ]);
    const { waiting, ready, delayed, held } = seen.counts;
    const sum = seen.waiting.reduce((all, { count }) => all + (count?.count ?? 0), 0);
    expect(sum).toBe(waiting.count + ready + delayed + held);
    await pool.run(["pause", "--wait"]);
    const paused = await overviewOf(pool);
    expect(paused.paused).toMatch(/^paused/);
    expect(paused.waiting.at(-1)).toMatchObject({ do: "mailchute resume" });
    await pool.killAll();
    const dead = await overviewOf(pool);
    expect(dead.health.state).toBe("dead");
    expect(dead.running).toMatchObject([{ id: "busy", is_alive: false }]);
  });
});

it(`a look at trays of ${MANY} names reads a bounded number of them`, async () => {
  const tree = newTree();
  fill(join(tree.mailbox, "inbox"), ".json", MANY);
  fill(join(tree.mailbox, "outbox"), "_result.json", MANY);
  fill(join(tree.mailbox, "failed"), "_error.json", MANY);
  const reader = readerOf(tree);
  expect(reader.next(NOW_MS).counts.done).toMatchObject({ count: 100_000, is_exact: false });
  for (let look = 0; look < 3; look++) {
    const reads = await readsOf(() => reader.next(NOW_MS + look * 250));
    expect(reads.names).toBeLessThanOrEqual(3 * 2000 + 2000 + 1000 + 100);
    expect(reads.opened).toBeLessThanOrEqual(300);
  }
});
