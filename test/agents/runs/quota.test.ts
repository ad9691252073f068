/** A usage limit: three slots, ten tasks, and no run of the account before the time that the service gave. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { GateDocument } from "../../../src/agents/accounts/gate-rules.ts";
import { readJson } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type Kind, newBench } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const TASKS = 10;
const SLOTS = 3;
/** So long the model takes for an answer. */
const ANSWER_MS = 300;

function gateOf(bench: Bench): GateDocument | undefined {
  return readJson<GateDocument>(bench.gatePath("coder"));
}

async function isClosed(bench: Bench): Promise<GateDocument> {
  return await waitFor(
    () => {
      const gate = gateOf(bench);
      return gate?.status === "closed" ? gate : undefined;
    },
    { what: "the closed gate" },
  );
}

// A program of kind acp gives no time.
const TIMED: readonly Kind[] = ["claude", "codex"];

describe.each(KINDS)("%s", (kind) => {
  it.runIf(TIMED.includes(kind)).each(["", ", also when the supervisor is killed in between"])(
    "starts no run before the end of a limit, and ends ten tasks in three slots%s",
    async (how) => {
      const limitForS = how === "" ? 3 : 6;
      const bench = newBench([
        {
          name: "coder",
          kind,
          turns: [
            [{ say: "1" }],
            [{ say: "2" }],
            [{ limitForS }, { sleepMs: ANSWER_MS }, { say: "ok" }],
          ],
        },
      ]);
      const { pool } = bench;
      const supervisor = await pool.start(["--workers", String(SLOTS)]);
      const ids = Array.from({ length: TASKS }, (_, n) => `t${n}`);
      for (const id of ids) pool.drop(id, { agent: "coder", prompt: id, max_attempts: 1 });
      const closed = await isClosed(bench);
      const { until_ms: untilMs } = closed;
      expect(untilMs % 1000).toBe(0);
      if (how !== "") {
        supervisor.child.kill("SIGKILL");
        await waitFor(() => supervisor.child.signalCode !== null, { what: "its end" });
        await pool.start(["--workers", String(SLOTS)]);
      }
      for (const id of ids) expect(await pool.result(id, 60_000)).toMatchObject({ attempts: 1 });
      const starts = bench.starts("coder");
      // Those that ran when the first of them was refused may be refused, too.
      const early = starts.filter(({ at }) => at > closed.closed_at_ms && at < untilMs);
      expect(early.length).toBeLessThan(SLOTS);
      expect(starts.length).toBeLessThanOrEqual(TASKS + SLOTS);
      // One probes, and the next ones start one by one: each when the one before has its answer.
      const late = starts.filter(({ at }) => at >= untilMs).slice(0, 5);
      for (const [n, { at }] of late.slice(1).entries())
        expect(at - (late[n]?.at ?? 0)).toBeGreaterThanOrEqual(ANSWER_MS);
      expect(bench.costs("coder").map(({ outcome }) => outcome)).toEqual(
        ids.map(() => "completed"),
      );
    },
  );

  it("closes the gate by a backoff when the service gives no time, and removing the file opens it", async () => {
    const bench = newBench([{ name: "coder", kind, turns: [[{ fail: 429 }], [{ say: "ok" }]] }]);
    const { pool } = bench;
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "go", max_attempts: 1 });
    const { until_ms: untilMs, closed_at_ms: closedMs } = await isClosed(bench);
    expect(untilMs - closedMs).toBeGreaterThan(20_000);
    expect(bench.starts("coder")).toHaveLength(1);
    fs.rmSync(bench.gatePath("coder"));
    expect(await pool.result("task")).toMatchObject({ output: "ok", attempts: 1 });
    expect(bench.starts("coder")).toHaveLength(2);
  });

  it("has only its own task wait when the gate cannot be written", async () => {
    const bench = newBench([{ name: "coder", kind, turns: [[{ limitForS: 2 }, { say: "ok" }]] }]);
    const { pool } = bench;
    fs.writeFileSync(join(pool.dir, "user"), "");
    await pool.start();
    pool.drop("task", { agent: "coder", prompt: "go", max_attempts: 1 });
    expect(await pool.result("task")).toMatchObject({ output: "ok", attempts: 1 });
  });
});

it("a drain ends without a task and a node that were held when their agent lost its slots", async () => {
  const turns = [[{ sleepMs: 500 }, { fail: 429 }]];
  const bench = newBench([{ name: "coder", kind: "claude", turns, settings: { slots: 2 } }]);
  const { pool } = bench;
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), "nodes:\n  - {id: node, agent: coder}\n");
  pool.drop("task", { agent: "coder", prompt: "go" });
  await pool.start();
  const held = (): number =>
    fs.readdirSync(pool.processing).filter((name) => name.includes("~hold-quota")).length;
  await waitFor(() => held() === 2, { what: "both to be held" });
  await pool.stop();
  const config = join(pool.state, "config.yaml");
  fs.writeFileSync(config, fs.readFileSync(config, "utf8").replace('"slots":2', '"slots":0'));
  fs.rmSync(bench.gatePath("coder"));
  const { code, stdout } = await pool.run(["run", "--drain"]);
  expect(code).toBe(1);
  expect(stdout).toContain("0 completed, 0 failed, 2 cannot run:");
  for (const id of ["task", "node"]) expect(stdout).toContain(`${id}: agent coder has 0 slots`);
  expect(stdout).toContain("1 in progress");
  expect(held()).toBe(2);
});
