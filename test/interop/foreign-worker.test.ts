/** A program that only knows plain names shares the mailbox with our workers: its claims are leases like any other. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { type Program, startProgram } from "../support/programs.ts";
import { takeSome } from "../support/take-some.ts";
import { waitFor } from "../support/wait-for.ts";

takeSome();

const LEASE_MS = 1500;
const CONFIG = `${QUICK_CONFIG}lease_ttl_ms: ${LEASE_MS}\nheartbeat_ms: 200\n`;

/** Who ran what, one line a run: "<id> ours" or "<id> foreign". */
function logOf(pool: Pool): { path: string; lines: () => string[] } {
  const path = join(pool.dir, "runs.log");
  fs.writeFileSync(path, "");
  return { path, lines: () => fs.readFileSync(path, "utf8").split("\n").slice(0, -1) };
}

function task(id: string, log: string): Record<string, unknown> {
  return {
    title: id,
    exec: ["sh", "-c", 'echo "$MAILCHUTE_TASK_ID ours" >> "$0"; echo ours', log],
  };
}

function startForeign(pool: Pool, log: string, mode: string): Program {
  return startProgram("foreign-worker.mjs", [pool.mailbox, log, mode]);
}

async function claimedId(program: Program): Promise<string> {
  await waitFor(() => program.stdout().includes("\n"), { what: "a foreign claim" });
  return program.stdout().trim();
}

describe("a foreign worker beside ours", () => {
  it("shares 300 tasks: each has one result and was run once", async () => {
    const pool = newPool({ config: CONFIG });
    const log = logOf(pool);
    await pool.start();
    await waitFor(() => pool.events().some((event) => event["event"] === "worker_started"), {
      what: "our worker to be there",
    });
    const foreign = [1, 2].map(() => startForeign(pool, log.path, "work"));
    const ids = Array.from({ length: 300 }, (_, i) => `shared-${i}`);
    for (const id of ids) pool.drop(id, task(id, log.path));
    await waitFor(() => pool.settledCount() === ids.length, {
      what: "300 records",
      timeoutMs: 25_000,
    });
    for (const { child } of foreign) child.stdin?.end();
    for (const { ended } of foreign) expect(await ended).toMatchObject({ exitCode: 0 });

    const lines = log.lines();
    const expected = new Set(ids);
    expect(lines).toHaveLength(ids.length);
    expect(new Set(lines.map((line) => line.split(" ")[0]))).toEqual(expected);
    const byOurs = lines.filter((line) => line.endsWith(" ours")).length;
    // How they share depends on the machine: that both ran some is the point.
    expect(byOurs).toBeGreaterThan(0);
    expect(byOurs).toBeLessThan(ids.length);
    for (const result of pool.results()) {
      const isOurs = lines.includes(`${result.task_id} ours`);
      expect(result.output).toBe(isOurs ? "ours\n" : `foreign ${result.task_id}`);
    }
    expect(pool.errors()).toEqual([]);
    await waitFor(() => fs.readdirSync(pool.processing).length === 0, { what: "empty processing" });
    expect(fs.readdirSync(pool.inbox)).toEqual([]);
    expect(pool.events().filter((event) => event["event"] === "reclaimed")).toEqual([]);
  });

  it("that dies with a claim: its task is taken back after the lease time, not before, and runs", async () => {
    const pool = newPool({ config: CONFIG });
    const log = logOf(pool);
    pool.drop("orphan", task("orphan", log.path));
    const foreign = startForeign(pool, log.path, "die");
    expect(await claimedId(foreign)).toBe("orphan");
    const startedMs = performance.now();
    await pool.start();
    foreign.child.kill("SIGKILL");
    expect((await pool.result("orphan")).output).toBe("ours\n");
    expect(performance.now() - startedMs).toBeGreaterThan(LEASE_MS);
    expect(log.lines()).toEqual(["orphan foreign", "orphan ours"]);
    expect(pool.events().filter((event) => event["event"] === "reclaimed")).toMatchObject([
      { task_id: "orphan", reason: "reclaimed_foreign" },
    ]);
    expect(fs.readdirSync(pool.processing)).toEqual([]);
  });

  it("that dies after its result was published: its claim is tidied away and nothing runs again", async () => {
    const pool = newPool({ config: CONFIG });
    const log = logOf(pool);
    await pool.start(["--paused"]);
    pool.drop("settled", task("settled", log.path));
    const foreign = startForeign(pool, log.path, "settle-and-die");
    expect(await claimedId(foreign)).toBe("settled");
    foreign.child.kill("SIGKILL");
    expect((await pool.run(["resume", "--wait"])).code).toBe(0);
    await waitFor(() => fs.readdirSync(pool.processing).length === 0, { what: "a tidy tray" });
    pool.drop("after", task("after", log.path));
    await pool.result("after");
    expect(log.lines()).toEqual(["settled foreign", "after ours"]);
    expect((await pool.result("settled")).output).toBe("foreign settled");
  });

  it("that shows its life by touching its file keeps its claim for longer than the lease time", async () => {
    const pool = newPool({ config: CONFIG });
    const log = logOf(pool);
    pool.drop("slow", task("slow", log.path));
    const foreign = startForeign(pool, log.path, "slow");
    await claimedId(foreign);
    await pool.start();
    const startedMs = performance.now();
    await waitFor(() => performance.now() - startedMs > 2.5 * LEASE_MS, { what: "two leases" });
    expect(log.lines()).toEqual(["slow foreign"]);
    foreign.child.stdin?.end();
    expect(await foreign.ended).toMatchObject({ exitCode: 0 });
    expect((await pool.result("slow")).output).toBe("foreign slow");
    expect(fs.readdirSync(pool.processing)).toEqual([]);
  });
});
