/** An agent whose runs fail again and again is paused, over restarts, until a person lets it go on. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];

function drop(pool: Pool, id: string, attempts = 1): void {
  pool.drop(id, { agent: "coder", prompt: id, max_attempts: attempts });
}

async function statusOf(pool: Pool): Promise<string> {
  return (await pool.run(["status"])).stdout.replace(/\s+/g, " ");
}

/** A failure that says nothing about the account or the settings. */
const brokenTurn = (kind: Kind): Step[] =>
  kind === "claude" ? [{ runaway: "model_error" }] : [{ fail: 400, message: "it cannot be done" }];

describe.each(KINDS)("%s", (kind) => {
  it("is paused after five alike failures in two workers, also over a restart, and goes on after resume", async () => {
    const failing = Array.from({ length: 5 }, () => brokenTurn(kind));
    const bench = newBench([{ name: "coder", kind, turns: [...failing, [{ say: "ok" }]] }]);
    const { pool } = bench;
    const running = await pool.start(["--processes", "2"]);
    for (const id of ["a", "b", "c", "d", "e"]) {
      drop(pool, id);
      await pool.error(id);
    }
    drop(pool, "later");
    pool.drop("other", { exec: ["true"] });
    await pool.result("other");
    await waitFor(async () => (await statusOf(pool)).includes("agent coder is paused"), {
      what: "status to tell of the pause",
    });
    expect(await statusOf(pool)).toContain("mailchute resume --agent coder");
    const waited = await pool.run(["wait", "later", "--timeout", "300ms"]);
    expect(waited.stderr).toContain("it waits: agent coder is paused since");
    expect(running.stderr()).toContain("then mailchute resume --agent coder");
    running.child.kill("SIGKILL");
    await waitFor(() => running.child.signalCode !== null, { what: "its end" });
    await pool.start();
    pool.drop("again", { exec: ["true"] });
    await pool.result("again");
    expect(bench.starts("coder")).toHaveLength(5);
    expect((await pool.run(["resume", "--agent", "coder"])).stdout).toContain("start again");
    expect(await pool.result("later")).toMatchObject({ output: "ok", attempts: 1 });
    const again = await pool.run(["resume", "--agent", "coder"]);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("is not paused")]);
  });

  it("is paused at once when the account is not let in twice; removing the file lets it go on", async () => {
    const bench = newBench([
      { name: "coder", kind, turns: [[{ fail: 401 }], [{ fail: 401 }], [{ say: "ok" }]] },
    ]);
    const { pool } = bench;
    await pool.start();
    drop(pool, "task");
    expect(await pool.error("task")).toMatchObject({ code: "ErrAuth" });
    drop(pool, "later");
    const path = join(pool.state, "breakers", "coder.json");
    expect(fs.readFileSync(path, "utf8")).toContain('"paused_at": "2');
    pool.drop("other", { exec: ["true"] });
    await pool.result("other");
    expect(bench.starts("coder")).toHaveLength(2);
    fs.rmSync(path);
    expect(await pool.result("later")).toMatchObject({ output: "ok" });
  });

  it("is not tried again with a task that fails three times in the same way", async () => {
    const bench = newBench([{ name: "coder", kind, turns: [brokenTurn(kind)] }]);
    const { pool } = bench;
    await pool.start();
    drop(pool, "task", 10);
    expect(await pool.error("task")).toMatchObject({
      attempts: 3,
      error: expect.stringContaining("3 runs in a row failed in this way: it is not tried again"),
    });
    expect(bench.starts("coder")).toHaveLength(3);
    const alerts = fs.readFileSync(join(pool.state, "analytics", "alerts.jsonl"), "utf8");
    expect(alerts).toContain('"same_failure"');
  });
});

it("is not paused when a person cancels one run after another", async () => {
  const busy = Array.from({ length: 6 }, (): Step[] => [{ run: "sleep 300" }]);
  const bench = newBench([{ name: "coder", kind: "claude", turns: [...busy, [{ say: "ok" }]] }]);
  const { pool } = bench;
  await pool.start();
  const ids = busy.map((_, n) => `t${n}`);
  for (const id of ids) drop(pool, id);
  const isBusy = (): boolean =>
    bench.log("coder").filter((one) => one.event_type === "tool_started").length === ids.length;
  await waitFor(isBusy, { what: "all tools" });
  for (const id of ids) expect((await pool.run(["cancel", id])).code).toBe(0);
  for (const id of ids) expect(await pool.error(id)).toMatchObject({ kind: "cancelled" });
  drop(pool, "later");
  expect(await pool.result("later")).toMatchObject({ output: "ok" });
  const told = pool.alerts().map(({ alert }) => String(alert));
  expect(told.filter((alert) => alert.startsWith("agent_"))).toEqual([]);
});

it("a task that was offered when its agent was paused is held, and not run", async () => {
  const bench = newBench([
    { name: "coder", kind: "claude", turns: [[{ sleepMs: 500 }, { fail: 401 }], [{ fail: 401 }]] },
  ]);
  const { pool } = bench;
  fs.mkdirSync(join(pool.state, "breakers"));
  await pool.start();
  fs.writeFileSync(
    join(pool.state, "breakers", "coder.json"),
    JSON.stringify({
      v: 1,
      agent: "coder",
      failure: "auth ErrAuth",
      count: 1,
      task_id: "x",
      message: "not let in",
      paused_at: new Date().toISOString(),
    }),
  );
  drop(pool, "task");
  await waitFor(async () => (await statusOf(pool)).includes("agent coder is paused"), {
    what: "status to tell of the pause",
  });
  expect(bench.starts("coder")).toEqual([]);
  expect((await pool.run(["cancel", "task"])).code).toBe(0);
  expect(await pool.error("task")).toMatchObject({ kind: "cancelled" });
});
