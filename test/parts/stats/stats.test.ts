/** `stats` against journals made by hand, and against what jq counts in the journal of a real pool. */
import { execFileSync } from "node:child_process";
import os from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ownerSequence } from "../../../src/host/identity.ts";
import type { Row } from "../../../src/view/tally.ts";
import { newCli, put } from "../../cli/run-cli.ts";
import { newPool } from "../../support/pool.ts";

const JOURNAL = "analytics/supervisor_lifecycle.jsonl";
const HOUR = 3_600_000;

interface End {
  id: string;
  agent?: string;
  status?: string;
  waitMs: number;
  runMs: number;
  atMs: number;
  attempt?: number;
  used?: object;
}

const linesOf = ({
  id,
  agent = "a",
  status = "completed",
  waitMs,
  runMs,
  atMs,
  attempt = 1,
  used = {},
}: End) => {
  const shared = { task_id: id, agent_id: agent, submission: `s-${id}-${atMs}` };
  const selected = { event: "selected", ...shared, t: atMs - runMs, queue_ms: waitMs };
  const end = {
    event: "completed",
    ...shared,
    t: atMs,
    status,
    attempt,
    duration_ms: runMs,
    ...used,
  };
  return `${JSON.stringify(selected)}\n${JSON.stringify(end)}\n`;
};

test("counts what ended in the period, by agent, with the waits and runs of just these tasks", async () => {
  const cli = newCli();
  const nowMs = Date.now();
  const long = linesOf({ id: "old", waitMs: 9e6, runMs: 9e6, atMs: nowMs - 30 * HOUR });
  put(cli, "analytics/supervisor_lifecycle.20260101T000000Z.jsonl", long);
  const ends: End[] = [];
  for (let n = 1; n <= 100; n++)
    ends.push({ id: `a${n}`, waitMs: n * 10, runMs: n * 1000, atMs: nowMs - HOUR + n });
  ends.push({
    id: "b",
    agent: "b",
    status: "failed",
    attempt: 3,
    waitMs: 5,
    runMs: 7,
    atMs: nowMs - 1,
  });
  const waits = `${JSON.stringify({ event: "selected", task_id: "w", submission: "w", t: nowMs, queue_ms: 8e6 })}\n`;
  const dropped = `${JSON.stringify({ event: "records_dropped", t: nowMs - 5, count: 1200 })}\n`;
  put(cli, JOURNAL, `${ends.map(linesOf).join("")}torn{\n${waits}${dropped}`);
  const { code, stdout } = await cli(["stats", "--by", "agent", "--json"]);
  expect(code).toBe(0);
  const { rows, ...lines } = JSON.parse(stdout) as { rows: Row[] };
  expect(lines).toMatchObject({ bad_lines: 1, lost_lines: 1200 });
  const within = (ms: number): unknown => expect.toSatisfy((x) => Math.abs(x / ms - 1) <= 0.0201);
  expect(rows).toEqual([
    {
      group: "a",
      completed: 100,
      failed: 0,
      skipped: 0,
      kinds: {},
      runs: 100,
      waited_ms: { p50: within(500), p95: within(950), max: 1000 },
      ran_ms: { p50: within(50_000), p95: within(95_000), max: 100_000 },
      cpu_ms: null,
      peak_memory_bytes: null,
    },
    {
      group: "b",
      completed: 0,
      failed: 1,
      skipped: 0,
      kinds: { unknown: 1 },
      runs: 3,
      waited_ms: { p50: within(5), p95: within(5), max: 5 },
      ran_ms: { p50: within(7), p95: within(7), max: 7 },
      cpu_ms: null,
      peak_memory_bytes: null,
    },
  ]);
  const all = await cli(["stats", "--since", "48h", "--json"]);
  expect(JSON.parse(all.stdout).rows).toMatchObject([
    { group: "all", completed: 101, failed: 1, waited_ms: { max: 9e6 } },
  ]);
  const text = await cli(["stats", "--by", "agent"]);
  expect(text.stdout).toMatch(/^AGENT +DONE +FAILED +WAIT p50 .*\na +100 +0 .*\nb +0 +1 /);
  expect(text.stderr).toContain("1 lines of the journal cannot be read");
  expect(text.stderr).toContain("1,200 lines of the journal were lost");
});

test("adds up the processor time of all runs of the tasks that ended, and takes the most memory", async () => {
  const cli = newCli();
  const atMs = Date.now() - 1000;
  const used = (cpu: unknown, bytes: unknown) => ({ cpu_ms: cpu, peak_memory_bytes: bytes });
  const end = { waitMs: 1, runMs: 1, atMs };
  const putBack = (id: string, event: string, more: object): string =>
    `${JSON.stringify({ event, task_id: id, submission: `s-${id}-${atMs}`, t: atMs - 25 * HOUR, ...more })}\n`;
  put(
    cli,
    JOURNAL,
    [
      putBack("x", "retry_scheduled", used(70_000, 3 * 2 ** 20)),
      putBack("x", "held", used("torn", null)),
      putBack("waits", "released", used(1e9, 1e12)),
      linesOf({ id: "x", used: used(500, 2 ** 20), ...end }),
      linesOf({ id: "short", ...end }),
    ].join(""),
  );
  const { stdout } = await cli(["stats", "--json"]);
  expect(JSON.parse(stdout).rows).toMatchObject([used(70_500, 3 * 2 ** 20)]);
  expect((await cli(["stats"])).stdout).toMatch(/ CPU +MEMORY\n.* 1 min 10 s +3.0 MiB$/m);
});

test("reads groups, types and titles from the records, and says when a record is gone", async () => {
  const cli = newCli();
  const atMs = Date.now() - 1000;
  const end = { waitMs: 1, runMs: 1, atMs };
  put(cli, JOURNAL, ["x", "y", "gone"].map((id) => linesOf({ id, ...end })).join(""));
  put(cli, "mailbox/outbox/x_result.json", {
    task: { title: "T\u001b[31m", type: "build", group: "gpu" },
  });
  put(cli, "mailbox/outbox/y_result.json", { task: { exec: ["make", "all"] } });
  const groupsBy = async (by: string): Promise<string[]> => {
    const { stdout } = await cli(["stats", "--by", by, "--json"]);
    return JSON.parse(stdout).rows.map((row: Row) => row.group);
  };
  expect(await groupsBy("group")).toEqual(["", "(record is gone)", "gpu"]);
  expect(await groupsBy("type")).toEqual(["", "(record is gone)", "build"]);
  expect(await groupsBy("title")).toEqual(["(record is gone)", "T\u001b[31m", "make all"]);
  const { stdout } = await cli(["stats", "--by", "title"]);
  expect(stdout).not.toContain("\u001b[31m");
});

test("says that no task ended, and refuses a span that is empty", async () => {
  const cli = newCli();
  put(cli, JOURNAL, "");
  expect((await cli(["stats"])).stderr).toContain("no task ended from");
  const refused = await cli(["stats", "--since", "1h", "--until", "2h"]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("not before --until") });
});

test("agrees with what jq counts in the journal of a real pool", async () => {
  const pool = newPool();
  for (let n = 0; n < 20; n++)
    pool.drop(`t${n}`, { exec: n % 4 === 0 ? ["false"] : ["true"], max_attempts: 1 });
  await pool.run(["run", "--drain", "--no-live"]);
  const program =
    'map(select(.event == "completed")) | ' +
    '{completed: map(select(.status == "completed")) | length, failed: map(select(.status == "failed")) | length, ' +
    "max: map(.duration_ms) | max}";
  const counted = JSON.parse(
    execFileSync("jq", ["-s", program, join(pool.state, JOURNAL)], { encoding: "utf8" }),
  );
  const [row] = JSON.parse((await pool.run(["stats", "--json"])).stdout).rows as Row[];
  expect(counted).toMatchObject({ completed: 15, failed: 5 });
  expect({ completed: row?.completed, failed: row?.failed, max: row?.ran_ms.max }).toEqual(counted);
});

test("counts by host, by the owners of the leases", async () => {
  const cli = newCli();
  const end = (id: string, owner?: string): string =>
    `${JSON.stringify({ event: "completed", task_id: id, submission: id, t: Date.now() - 5, status: "completed", attempt: 1, duration_ms: 1, owner })}\n`;
  const own = ownerSequence()();
  const other = own.replace(/^..../, own.startsWith("beef") ? "dead" : "beef");
  put(cli, JOURNAL, end("a", own) + end("b", own) + end("c", other) + end("d"));
  const { rows } = JSON.parse((await cli(["stats", "--by", "host", "--json"])).stdout);
  expect(rows.map(({ group, completed }: Row) => [group, completed])).toEqual([
    [os.hostname(), 2],
    ["", 1],
    [other.slice(0, 4), 1],
  ]);
});
