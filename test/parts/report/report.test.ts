/** `report` on real state trees: its numbers, beside those that another reader finds in the files; and its three formats. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import type { Report } from "../../../src/parts/report/report.ts";
import { FailureCausesReader } from "../../../src/view/failure-causes.ts";
import { newCli, put } from "../../cli/run-cli.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { expectSameNumbers, HAS_JQ } from "./reader.ts";

/** A pool with all that a night brings: good tasks, failures of two causes, a retry, a cancelled and a skipped task, rubbish, a killed worker, a killed supervisor. */
async function aNight() {
  const pool = newPool({ config: `${QUICK_CONFIG}processes: 1\nprices: {}\n` });
  const first = await pool.start();
  const exec = (id: string, script: string, more: object = {}): void =>
    fs.writeFileSync(
      join(pool.tmp, `${id}.json`),
      JSON.stringify({ id, exec: ["sh", "-c", script], ...more }),
    );
  exec("good-1", "true");
  exec("good-2", "true");
  exec("bad-1", "echo cannot reach port 5432 >&2; exit 3", { max_attempts: 1 });
  exec("bad-2", "echo cannot reach port 5433 >&2; exit 3", { max_attempts: 2 });
  exec("child", "true", { metadata: { dependencies: ["bad-1"] } });
  exec("slow", "sleep 60");
  exec(
    "killed",
    `test -e ${join(pool.dir, "again")} || { touch ${join(pool.dir, "again")}; sleep 60; }`,
  );
  fs.writeFileSync(join(pool.tmp, "rubbish.json"), "{");
  for (const name of fs.readdirSync(pool.tmp).filter((one) => one.endsWith(".json")))
    fs.renameSync(join(pool.tmp, name), join(pool.inbox, name));
  const has = (dir: string, name: string): boolean => fs.existsSync(join(dir, name));
  // Each is told to its end, which the worker does before it dies.
  for (const id of ["good-1", "good-2"]) await pool.result(id);
  for (const id of ["bad-1", "bad-2", "child"]) await pool.error(id);
  const isOn = (): boolean =>
    has(pool.failed, "rubbish_error.json") &&
    has(pool.dir, "again") &&
    fs.readdirSync(pool.processing).some((name) => name.startsWith("slow@"));
  await waitFor(isOn, { what: "the first tasks" });
  const workers = fs.readdirSync(join(pool.state, "workers"));
  const worker = workers.find((name) => name.endsWith(".json")) ?? "";
  const { pid } = JSON.parse(fs.readFileSync(join(pool.state, "workers", worker), "utf8"));
  process.kill(pid, "SIGKILL");
  await waitFor(() => has(pool.outbox, "killed_result.json"), { what: "the killed task" });
  first.child.kill("SIGKILL");
  // Its output ends only with that of its worker.
  await waitFor(() => first.child.signalCode !== null, { what: "the end of the supervisor" });
  const supervisor = await pool.start();
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
      skipped: 1,
      refused: 1,
      mended: 0,
      retries: 1,
      with_failed_lines: 0,
      landed: 0,
      not_landed: 0,
      crashes: report.counts.crashes,
      reclaimed: report.counts.reclaimed,
    });
    expect(report.counts.reclaimed).toBeGreaterThanOrEqual(1);
    expect(report.counts.crashes).toBeGreaterThanOrEqual(2);
    expect(report.waited_ms.p50).toBeGreaterThanOrEqual(0);
    expect(report.ran_ms.p95).toBeGreaterThan(0);
    expect(report.failures.map(({ kind, count, error }) => [kind, count, error])).toEqual([
      ["exit", 2, expect.stringContaining("exit code 3")],
    ]);
    expect(report.failures[0]?.tasks.toSorted()).toEqual(["bad-1", "bad-2"]);
    const crashes = report.crashes.map(({ what }) => what);
    expect(crashes[0]).toMatch(/^worker .* \(SIGKILL\)$/);
    expect(crashes).toContain("the supervisor had died, and a new one went on");
    const retry = report.next.find(({ do: todo }) => todo.startsWith("mailchute retry"));
    expect(retry?.do.split(" ").slice(2).toSorted()).toEqual(["bad-1", "bad-2"]);
    if (HAS_JQ) expectSameNumbers(pool.state, report);
  });

  it("groups failures as top does, by the words of their programs, and knows which run they are about", async () => {
    const pool = newPool({ config: QUICK_CONFIG });
    const words = ["disk full", "no such host", "permission denied", "a bad word", "out of memory"];
    for (let n = 0; n < 25; n++) {
      const script = `echo "${words[n % 5]}" >&2; exit 1`;
      pool.drop(`t-${n}`, { exec: ["sh", "-c", script], max_attempts: 1 });
    }
    await pool.run(["run", "--drain"]);
    const until = new Date().toISOString();
    const failures = async (): Promise<string[]> => {
      const args = ["report", "--since", "1h", "--until", until, "--json"];
      const report = JSON.parse((await pool.run(args)).stdout) as Report;
      return report.failures.map(({ kind, count, error }) => `${count} ${kind} ${error}`).sort();
    };
    const { causes } = new FailureCausesReader(stateTree(pool.state)).look();
    const shown = causes.map(({ kind, count, error }) => `${count} ${kind} ${error}`).sort();
    expect(shown).toHaveLength(5);
    expect(await failures()).toEqual(shown);
    // A later run of the task says nothing of the earlier one.
    const path = join(pool.failed, "t-0_error.json");
    const record = JSON.parse(fs.readFileSync(path, "utf8"));
    fs.writeFileSync(path, JSON.stringify({ ...record, lease: "later.1.x", error: "later" }));
    expect(await failures()).toContain("1 exit the program ended with exit code 1");
  });

  it("gives the same page for the same files and period, in each format", async () => {
    const pool = newPool({ config: QUICK_CONFIG });
    pool.drop("good-1", { exec: ["true"] });
    pool.drop("bad-1", { exec: ["false"], max_attempts: 2 });
    await pool.run(["run", "--drain"]);
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
          { event: "selected", task_id: text, submission: `s${n}`, t: t + n, title: text },
          { event: "assigned", task_id: text, submission: `s${n}`, agent_id: text, t: t + n },
          {
            event: "held",
            task_id: text,
            submission: `s${n}`,
            t: t + n + 2,
            gate: text,
            error: text,
          },
          { event: "failed", task_id: text, agent_id: text, t: t + n, error: text, kind: "exit" },
          {
            event: "completed",
            task_id: text,
            agent_id: text,
            t: t + n,
            attempt: 1,
            status: "failed",
            denied: [text],
          },
        ])
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
    );
    put(cli, "mailbox/inbox/.keep", "");
    for (const format of ["text", "md", "html"]) {
      const { stdout, code } = await cli(["report", "--format", format, "--state", "state"]);
      expect(code).toBe(0);
      expect(stdout).toContain("Tools that were denied");
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      if (format === "text") continue;
      const bare = stdout.replaceAll(/(`+) ?[\s\S]*?\1/g, (span) => (format === "md" ? "" : span));
      expect(bare).not.toContain("<script>alert");
      expect(stdout.includes("<rect ")).toBe(format === "html");
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
