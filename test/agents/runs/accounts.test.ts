/** An agent with several accounts goes on with the next one; a part of a quota may be left to the owner of the account. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closeGate, openGate } from "../../../src/agents/accounts/gate-rules.ts";
import { parseName } from "../../../src/core/names.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type FakeAccount, type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex"];
const HOUR_S = 3600;
const inAnHour = (): number => Math.ceil(Date.now() / 1000) + HOUR_S;

/** An agent `coder` with these accounts, in this order. */
function benchWith(kind: Kind, accounts: Record<string, FakeAccount>): Bench {
  const settings = { account: undefined, accounts: Object.keys(accounts) };
  return newBench([{ name: "coder", kind, turns: [], settings }], { accounts });
}

/** How full the only window of an account is, as each program tells it. */
function windowStep(kind: Kind, pct: number, resetsAt: number): Step {
  const five_hour = { utilization: pct / 100, resetsAt, status: "allowed" };
  return kind === "claude"
    ? { windows: { status: "allowed", rateLimitType: "five_hour", unifiedWindows: { five_hour } } }
    : {
        windows: {
          limit_id: "codex",
          primary: { used_percent: pct, window_minutes: 300, resets_at: resetsAt },
          secondary: null,
        },
      };
}

function closeAccount(bench: Bench, account: string, untilMs: number): void {
  const path = bench.gatePath(account);
  const refusal = { untilMs, window: null, reason: "5-hour limit" };
  fs.mkdirSync(join(path, ".."), { recursive: true });
  fs.writeFileSync(path, JSON.stringify(closeGate(openGate(account), refusal, Date.now(), 0.5)));
}

const drop = (pool: Pool, id: string): void =>
  pool.drop(id, { agent: "coder", prompt: `do ${id}`, max_attempts: 1 });

/** Without the breaks of its lines. */
async function statusOf(pool: Pool): Promise<string> {
  return (await pool.run(["status"])).stdout.replace(/\s+/g, " ");
}

const isHeld = (pool: Pool, id: string): boolean =>
  fs.readdirSync(pool.processing).some((file) => {
    const name = parseName(file);
    return name?.id === id && name.stage === "hold";
  });

describe.each(KINDS)("%s with two accounts", (kind) => {
  it("goes on with the second one, in a new session that is told what the first one did", async () => {
    const bench = benchWith(kind, {
      one: { turns: [[{ say: "half of it is done" }, { limit: inAnHour() }]] },
      two: { turns: [[{ say: "the other half" }]] },
    });
    const { pool } = bench;
    await pool.start();
    drop(pool, "task");
    expect(await pool.result("task")).toMatchObject({ output: "the other half", attempts: 1 });
    expect([bench.starts("one").length, bench.starts("two").length]).toEqual([1, 1]);
    expect(bench.resumed("two")).toEqual([undefined]);
    const [told] = bench.messages("two");
    expect(told).toContain("do task");
    expect(told).toContain("half of it is done");
    expect(bench.costs("coder").at(-1)).toMatchObject({ account: "two", outcome: "completed" });
    const status = await statusOf(pool);
    expect(status).toContain("account one: no run before");
    expect(status).toContain("coder works with account two");
    // The account is closed: what comes later begins with the other one at once.
    drop(pool, "later");
    await pool.result("later");
    expect(bench.starts("one")).toHaveLength(1);
  });

  it("waits for the account of its session when that is open again in a short while", async () => {
    const bench = benchWith(kind, {
      one: { turns: [[{ say: "half" }, { limitForS: 3 }], [{ say: "whole" }]] },
      two: { turns: [[{ say: "not here" }]] },
    });
    const { pool } = bench;
    await pool.start();
    drop(pool, "task");
    expect(await pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
    expect(bench.starts("two")).toEqual([]);
    expect(bench.resumed("one")[1]).toBeTypeOf("string");
  });

  it("waits when both are closed, and goes on with the one that opens", async () => {
    const bench = benchWith(kind, {
      one: { turns: [[{ say: "one" }]] },
      two: { turns: [[{ limit: inAnHour() }], [{ say: "two" }]] },
    });
    const { pool } = bench;
    closeAccount(bench, "one", Date.now() + 2 * HOUR_S * 1000);
    await pool.start();
    drop(pool, "task");
    await waitFor(() => isHeld(pool, "task"), { what: "the held task" });
    drop(pool, "second");
    const waited = await pool.run(["wait", "second", "--timeout", "300ms"]);
    expect(waited.stderr).toContain("it waits: account two: no run before");
    fs.rmSync(bench.gatePath("two"));
    expect(await pool.result("task")).toMatchObject({ output: "two", attempts: 1 });
    expect(await pool.result("second")).toMatchObject({ output: "two" });
    expect(bench.starts("one")).toEqual([]);
  });
});

describe.each(KINDS)("%s with a reserve", (kind) => {
  it("starts no run on the rest of a window, and lets the one that is on go to its end", async () => {
    const bench = benchWith(kind, {
      one: {
        turns: [[windowStep(kind, 81, inAnHour()), { sleepMs: 300 }, { say: "one" }]],
        reserve_pct: 20,
      },
      two: { turns: [[{ say: "two" }]] },
    });
    const { pool } = bench;
    await pool.start();
    drop(pool, "first");
    expect(await pool.result("first")).toMatchObject({ output: "one" });
    drop(pool, "second");
    expect(await pool.result("second")).toMatchObject({ output: "two" });
    const status = await statusOf(pool);
    expect(status).toMatch(
      /account one: no run before .*the last 20 % of its quota \(\w+\) are left to its owner/,
    );
    expect(status).toContain("lower reserve_pct of one");
  });

  it("starts runs again when the window has ended, and while less of it is used", async () => {
    const resetsAt = Math.ceil(Date.now() / 1000) + 5;
    const bench = benchWith(kind, {
      one: {
        turns: [
          [windowStep(kind, 79, resetsAt), { say: "a" }],
          [windowStep(kind, 90, resetsAt), { say: "b" }],
          [{ say: "c" }],
        ],
        reserve_pct: 20,
      },
    });
    const { pool } = bench;
    await pool.start();
    for (const id of ["a", "b", "c"]) {
      drop(pool, id);
      expect(await pool.result(id)).toMatchObject({ output: id, attempts: 1 });
    }
    const [, , last] = bench.starts("one");
    expect(last?.at).toBeGreaterThanOrEqual(resetsAt * 1000);
  });
});

it("a held task takes the account that its agent has when its turn comes", async () => {
  const bench = benchWith("claude", {
    one: { turns: [[{ say: "half of it" }, { limit: inAnHour() }]] },
  });
  const { pool } = bench;
  const running = await pool.start();
  drop(pool, "task");
  await waitFor(() => isHeld(pool, "task"), { what: "the held task" });
  running.child.kill("SIGTERM");
  await waitFor(() => running.child.exitCode !== null, { what: "the supervisor's end" });
  const config = join(pool.state, "config.yaml");
  const text = fs.readFileSync(config, "utf8");
  const turns = JSON.stringify(JSON.stringify({ turns: [[{ say: "whole" }]] }));
  const home = JSON.stringify(join(pool.dir, "fakes", "two"));
  fs.writeFileSync(
    config,
    `${text
      .replace('"accounts":["one"]', '"accounts":["two"]')
      .replace(
        /^accounts: .*$/m,
        "",
      )}accounts: {two: {env: {FAKE_AGENT: ${turns}, FAKE_AGENT_STATE: ${home}}}}\n`,
  );
  await pool.start();
  expect(await pool.result("task")).toMatchObject({ output: "whole", attempts: 1 });
  expect(bench.resumed("two")).toEqual([undefined]);
  expect(bench.messages("two")[0]).toContain("half of it");
});
