/** `health` on a real pool that is started, paused, stopped in its tracks, killed and stopped, and on documents made by hand. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SupervisorDocument } from "../../../src/core/documents.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { thisProcess } from "../../../src/host/identity.ts";
import { machineMs } from "../../../src/host/system-clock.ts";
import { treeIdOf } from "../../../src/host/tree-id.ts";
import { type Ailment, findAilments } from "../../../src/parts/health/judge.ts";
import { takeSnapshot } from "../../../src/view/snapshot-reader.ts";
import { readSupervisor } from "../../../src/view/supervisor.ts";
import { newPool, type Pool } from "../../support/pool.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

async function healthOf(
  pool: Pool,
  ...args: string[]
): Promise<{ code: number | null; codes: string[] }> {
  const { code, stdout } = await pool.run(["health", "--json", ...args]);
  const { ok, ailments } = JSON.parse(stdout) as { ok: boolean; ailments: Ailment[] };
  expect(ok).toBe(code === 0);
  for (const { what, do: todo } of ailments) expect(`${what}${todo}`).not.toContain("undefined");
  return { code, codes: ailments.map((one) => one.code) };
}

test("a pool is well while its supervisor lives, also when it is paused, and not before or after", async () => {
  const pool = newPool();
  expect(await healthOf(pool)).toEqual({ code: 1, codes: ["stopped"] });
  await pool.start();
  expect(await healthOf(pool)).toEqual({ code: 0, codes: [] });
  expect((await pool.run(["health"])).stdout).toMatch(
    /^well: the supervisor \(pid \d+\) is running/,
  );
  await pool.run(["pause", "--wait"]);
  expect(await healthOf(pool)).toEqual({ code: 0, codes: [] });
  await pool.stop();
  expect(await healthOf(pool)).toEqual({ code: 1, codes: ["stopped"] });
  const { stdout } = await pool.run(["health"]);
  expect(stdout).toBe("not well: no supervisor runs on this state tree\n  do: mailchute run\n");
});

test("a supervisor that hangs is late, and one that was killed is dead", async () => {
  const pool = newPool();
  const { child } = await pool.start();
  child.kill("SIGSTOP");
  await waitFor(async () => (await healthOf(pool, "--late", "1s")).codes.includes("late"), {
    what: "a late heartbeat",
  });
  child.kill("SIGKILL");
  await waitFor(async () => (await healthOf(pool)).codes.includes("dead"), { what: "its death" });
});

test("a plan that has problems is an ailment, and its mending ends it", async () => {
  const pool = newPool();
  const plan = join(pool.state, "roadmap.yaml");
  fs.writeFileSync(plan, "nodes: [{ id: a, exec: [true }]\n");
  await pool.start();
  const isIll = async (): Promise<boolean> => (await healthOf(pool)).codes.includes("plan");
  await waitFor(isIll, { what: "the problem of the plan" });
  fs.writeFileSync(plan, "nodes: [{ id: a, exec: ['true'] }]\n");
  await waitFor(async () => !(await isIll()), { what: "the end of the problem" });
});

test("a full disk and what the system refuses are named", () => {
  const document = {
    pid: 7,
    status: "running",
    roadmap_problem: null,
    intake_stopped: { reason: "disk", free_bytes: 5, min_bytes: 10, path: "/x" },
    troubles: [{ what: "cannot watch", do: "raise the limit" }],
  } as unknown as SupervisorDocument;
  const view = { state: "running", document, heartbeat_age_ms: 5 } as const;
  const found = findAilments(view, 1_000_000, 60_000);
  expect(found.map(({ code }) => code)).toEqual(["disk", "trouble"]);
  expect(found[1]).toEqual({ code: "trouble", what: "cannot watch", do: "raise the limit" });
  expect(findAilments({ ...view, heartbeat_age_ms: 60_001 }, 1_000_000, 60_000)[0]).toMatchObject({
    code: "late",
    what: "the last heartbeat of the supervisor (pid 7) was 1 min ago",
  });
});

/** A tree with a supervisor that lives: this process. */
function attendedTree() {
  const tree = stateTree(tempDir());
  const { place, startTicks } = thisProcess();
  const of = { pid: process.pid, place, start_ticks: startTicks, tree: treeIdOf(tree.dir) };
  const write = (mono: unknown, more: object = {}): void =>
    fs.writeFileSync(
      tree.supervisor,
      JSON.stringify({
        ...of,
        nonce: "n",
        status: "running",
        started_at: "2026-01-01T00:00:00.000Z",
        heartbeat_mono_ms: mono,
        ...more,
      }),
    );
  return { tree, write };
}

test("neither a machine that slept for an hour nor a full disk makes a heartbeat late, and a supervisor that hangs does", () => {
  const { tree, write } = attendedTree();
  const beatMs = machineMs();
  const HOUR_MS = 3_600_000;
  /** The codes after so much time by the wall clock, and by the machine's clock, which does not count its sleep. */
  const after = (wallMs: number, monoMs: number): string[] => {
    const nowMs = Date.now() + wallMs;
    const view = readSupervisor(tree, nowMs, beatMs + monoMs);
    return findAilments(view, nowMs, 60_000).map(({ code }) => code);
  };
  write(beatMs);
  expect(after(0, 0)).toEqual([]);
  expect(after(HOUR_MS, 1000)).toEqual([]);
  expect(after(HOUR_MS, HOUR_MS)).toEqual(["late"]);
  // A full disk: only the mtime is new.
  write(beatMs - HOUR_MS);
  expect(after(0, 0)).toEqual([]);
  // An earlier version, and one that ran before the machine started again.
  write(undefined);
  expect(after(HOUR_MS, 0)).toEqual(["late"]);
  write(beatMs, { place: "0123456789ab" });
  expect(readSupervisor(tree, Date.now() + HOUR_MS, beatMs).heartbeat_age_ms).toBeGreaterThan(
    60_000,
  );
});

test("status names a supervisor that hangs, and what to do, but none after a machine has slept", () => {
  const { tree, write } = attendedTree();
  const MINUTES_MS = 120_000;
  const told = (monoAgeMs: number): string[] => {
    write(machineMs() - monoAgeMs);
    const at = Date.now() / 1000 - MINUTES_MS / 1000;
    fs.utimesSync(tree.supervisor, at, at);
    return takeSnapshot(tree, Date.now()).obstacles.map((one) => `${one.what}: ${one.do}`);
  };
  expect(told(MINUTES_MS)).toEqual([expect.stringMatching(/heartbeat is late.*kill -CONT/)]);
  expect(told(1000)).toEqual([]);
});

test("a stop of a supervisor that hangs says so when its time is over", async () => {
  const pool = newPool();
  const { child, pid } = await pool.start();
  child.kill("SIGSTOP");
  const document = { ...pool.supervisor(), heartbeat_mono_ms: machineMs() - 20_000 };
  fs.writeFileSync(join(pool.state, "supervisor.json"), JSON.stringify(document));
  const at = Date.now() / 1000 - 20;
  fs.utimesSync(join(pool.state, "supervisor.json"), at, at);
  const { code, stderr } = await pool.run(["stop", "--timeout", "100ms"]);
  expect(code).toBe(124);
  expect(stderr).toMatch(
    new RegExp(`pid ${pid} has not ended in time: it hangs since .*kill -KILL`),
  );
});
