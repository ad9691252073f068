/** `report` on real state trees: its numbers, beside those that another reader finds in the files; and its three formats. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Report } from "../../../src/parts/report/report.ts";
import { newCli, put } from "../../cli/run-cli.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const hasJq = spawnSync("jq", ["--version"]).status === 0;

/** Runs a jq program over a journal: the reader that shares no code with the report. */
function jq(program: string, file: string): unknown {
  const { stdout, stderr, status } = spawnSync("jq", ["-cRn", program, file], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

/** A pool with all that a night brings: good tasks, failures of two causes, a retry, a cancelled task, rubbish, a killed worker. */
async function aNight() {
  const pool = newPool({ config: `${QUICK_CONFIG}processes: 1\nprices: {}\n` });
  const supervisor = await pool.start();
  const exec = (id: string, script: string, more: object = {}): void =>
    fs.writeFileSync(
      join(pool.tmp, `${id}.json`),
      JSON.stringify({ id, exec: ["sh", "-c", script], ...more }),
    );
  exec("good-1", "true");
  exec("good-2", "true");
  exec("bad-1", "echo cannot reach port 5432 >&2; exit 3", { max_attempts: 1 });
  exec("bad-2", "echo cannot reach port 5433 >&2; exit 3", { max_attempts: 2 });
  exec("slow", "sleep 60");
  exec(
    "killed",
    `test -e ${join(pool.dir, "again")} || { touch ${join(pool.dir, "again")}; sleep 60; }`,
  );
  fs.writeFileSync(join(pool.tmp, "rubbish.json"), "{");
  for (const name of fs.readdirSync(pool.tmp).filter((one) => one.endsWith(".json")))
    fs.renameSync(join(pool.tmp, name), join(pool.inbox, name));
  const has = (dir: string, name: string): boolean => fs.existsSync(join(dir, name));
  await waitFor(
    () =>
      ["good-1", "good-2"].every((id) => has(pool.outbox, `${id}_result.json`)) &&
      ["bad-1", "bad-2", "rubbish"].every((id) => has(pool.failed, `${id}_error.json`)) &&
      has(pool.dir, "again") &&
      fs.readdirSync(pool.processing).some((name) => name.startsWith("slow@")),
    { what: "the first tasks" },
  );
  const workers = fs.readdirSync(join(pool.state, "workers"));
  const worker = workers.find((name) => name.endsWith(".json")) ?? "";
  const { pid } = JSON.parse(fs.readFileSync(join(pool.state, "workers", worker), "utf8"));
  process.kill(pid, "SIGKILL");
  await waitFor(() => has(pool.outbox, "killed_result.json"), { what: "the killed task" });
  expect((await pool.run(["cancel", "slow"])).code).toBe(0);
  await waitFor(() => has(pool.failed, "slow_error.json"), { what: "the cancelled task" });
  expect((await pool.run(["stop"])).code).toBe(0);
  await supervisor.ended;
  return pool;
}

describe("report", () => {
  it("says what happened in a night, and its numbers are those of the files", async () => {
    const pool = await aNight();
    const { stdout, code } = await pool.run(["report", "--since", "1h", "--json"]);
    expect(code).toBe(0);
    const report: Report = JSON.parse(stdout);
    expect(report.counts).toEqual({
      completed: 3,
      failed: 2,
      cancelled: 1,
      skipped: 0,
      refused: 1,
      mended: 0,
      retries: 1,
      with_failed_lines: 0,
      landed: 0,
      not_landed: 0,
      crashes: 1,
      reclaimed: report.counts.reclaimed,
    });
    expect(report.counts.reclaimed).toBeGreaterThanOrEqual(1);
    expect(report.waited_ms.p50).toBeGreaterThanOrEqual(0);
    expect(report.ran_ms.p95).toBeGreaterThan(0);
    expect(report.failures).toMatchObject([{ kind: "exit", count: 2 }]);
    expect(report.failures[0]?.tasks.toSorted()).toEqual(["bad-1", "bad-2"]);
    expect(report.crashes).toMatchObject([
      { what: expect.stringMatching(/^worker .* \(SIGKILL\)$/) },
    ]);
    const retry = report.next.find(({ do: todo }) => todo.startsWith("mailchute retry"));
    expect(retry?.do.split(" ").slice(2).toSorted()).toEqual(["bad-1", "bad-2"]);
    if (!hasJq) return;
    const events = join(pool.state, "analytics", "supervisor_lifecycle.jsonl");
    const found = jq(
      `[inputs | fromjson?] | {
        ends: (group_by(.task_id) | map(last(.[] | select(.event == "completed")) // empty)),
        why: map(select(.event == "failed" or .event == "cancelled")),
        of: (group_by(.event) | map({(.[0].event): length}) | add)
      } | (.why | map({(.task_id): .kind}) | add) as $kind | {
        completed: [.ends[] | select(.status == "completed")] | length,
        failed: [.ends[] | select(.status == "failed" and $kind[.task_id] != "cancelled")] | length,
        cancelled: [.ends[] | select(.status == "failed" and $kind[.task_id] == "cancelled")] | length,
        refused: (.of.quarantined // 0),
        retries: (.of.retry_scheduled // 0),
        reclaimed: (.of.reclaimed // 0),
        crashes: (.of.worker_stopped // 0)
      }`,
      events,
    ) as Record<string, number>;
    expect(report.counts).toMatchObject(found);
    const more = jq(
      `def at($share): if length == 0 then null else sort | .[(length * $share | ceil) - 1] end;
      [inputs | fromjson?] | {
        waits: [.[] | select(.event == "selected") | .queue_ms | numbers],
        ends: [.[] | select(.event == "completed")],
        why: map(select(.event == "failed") | {key: .task_id, value: .kind}) | from_entries
      } | {
        waited: [(.waits | at(0.5)), (.waits | at(0.95))],
        ran: [([.ends[].duration_ms | numbers] | at(0.5)), ([.ends[].duration_ms | numbers] | at(0.95))],
        slowest: [.ends[] | select(.duration_ms != null)] | sort_by(-.duration_ms) | .[:5] | map([.task_id, .duration_ms]),
        completed: [.ends[] | select(.status == "completed") | [.task_id, .attempt]],
        kinds: (.why as $why | [.ends[] | select(.status == "failed") | $why[.task_id] // empty] | group_by(.) | map([.[0], length]))
      }`,
      events,
    ) as Record<"waited" | "ran" | "slowest" | "completed" | "kinds", unknown[]>;
    // Percentiles are at most 2 % off.
    for (const [name, exact] of [
      ["waited_ms", more.waited],
      ["ran_ms", more.ran],
    ] as const)
      for (const [at, share] of (["p50", "p95"] as const).entries())
        expect(Math.abs((report[name][share] ?? -1) / Number(exact[at]) - 1), name).toBeLessThan(
          0.021,
        );
    expect(report.slowest.map(({ id, duration_ms: ms }) => [id, ms])).toEqual(more.slowest);
    expect(report.completed.map(({ id, attempts }) => [id, attempts])).toEqual(more.completed);
    expect(report.failures.map(({ kind, count }) => [kind, count])).toEqual(more.kinds);
  });

  it("gives the same page for the same files and period, in each format", async () => {
    const pool = await aNight();
    const until = new Date().toISOString();
    for (const format of ["text", "md", "html"]) {
      const args = ["report", "--since", "1h", "--until", until, "--format", format];
      // The start of the period moves with the clock, so it is given, too.
      args[2] = new Date(Date.parse(until) - 3_600_000).toISOString();
      const [first, second] = [await pool.run(args), await pool.run(args)];
      expect(first).toEqual(second);
      expect(first.stdout).toContain("good-1");
      if (format !== "text") continue;
      const wide = first.stdout.split("\n").filter((line) => line.length > 80);
      // Only a command to paste may be longer.
      expect(wide.filter((line) => !line.startsWith("    mailchute"))).toEqual([]);
    }
  });

  it("shows hostile text as text: no markup, no control characters, no broken table", async () => {
    const cli = newCli();
    const t = Date.now() - 60_000;
    const hostile = [
      "<script>alert(1)</script>",
      "a|b\u001b]52;c;aGk=\u0007",
      "\u202Egnp.exe",
      "`$(touch x)`; echo 'x",
      "![x](http://127.0.0.1/x)",
    ];
    put(
      cli,
      "analytics/supervisor_lifecycle.jsonl",
      hostile
        .flatMap((text, n) => [
          { event: "failed", task_id: text, agent_id: text, t: t + n, error: text, kind: "exit" },
          {
            event: "completed",
            task_id: text,
            agent_id: text,
            t: t + n,
            attempt: 1,
            status: "failed",
          },
        ])
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
    );
    put(cli, "mailbox/inbox/.keep", "");
    for (const format of ["text", "md", "html"]) {
      const { stdout, code } = await cli(["report", "--format", format, "--state", "state"]);
      expect(code).toBe(0);
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      if (format === "text") continue;
      const bare = stdout.replaceAll(/(`+) ?[\s\S]*?\1/g, (span) => (format === "md" ? "" : span));
      expect(bare).not.toContain("<script>alert");
      if (format === "md") {
        expect(bare).not.toMatch(/(?<!\\)!\[/);
        for (const line of stdout.split("\n").filter((one) => one.startsWith("|")))
          expect(line.replaceAll("\\|", "").split("|").length, line).toBeGreaterThan(3);
      }
    }
  });

  it("says so when there is nothing to tell, and refuses a period without length", async () => {
    const cli = newCli();
    await cli(["init"]);
    const { stdout } = await cli(["report"]);
    expect(stdout).toContain("0 completed, 0 failed");
    const wrong = await cli(["report", "--since", "1h", "--until", "2h"]);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("--since is not before"),
    ]);
  });

  it("reads rotated journals, and counts lines that are damaged", async () => {
    const cli = newCli();
    const end = (id: string, t: number): string =>
      `${JSON.stringify({ event: "completed", task_id: id, agent_id: "x", t, attempt: 1, status: "completed" })}\n`;
    const t = Date.now() - 60_000;
    put(cli, "analytics/supervisor_lifecycle.20260101T000000Z.jsonl", end("old", t));
    put(cli, "analytics/supervisor_lifecycle.jsonl", `{"event":"compl\n${end("new", t + 1)}`);
    put(cli, "mailbox/inbox/.keep", "");
    const report: Report = JSON.parse((await cli(["report", "--json"])).stdout);
    expect(report.completed.map(({ id }) => id)).toEqual(["old", "new"]);
    expect(report.bad_lines).toBe(1);
  });
});
