/** A pause that comes between a node's mark in the plan and its run: what is in progress runs, and nothing else begins. */
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { newPool, type Pool, readJson } from "../../support/pool.ts";
import { readPlan } from "../../support/read-plan.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

const roadmapOf = (pool: Pool): string => join(pool.state, "roadmap.yaml");

/** A program that runs until the file `go-ID` is there. */
function untilLetGo(pool: Pool, id: string): string[] {
  return ["sh", "-c", `while [ ! -e ${join(pool.dir, `go-${id}`)} ]; do sleep 0.1; done`];
}

const letGo = (pool: Pool, id: string): void => fs.writeFileSync(join(pool.dir, `go-${id}`), "");

/** Replaced whole, as an editor does. */
function plan(pool: Pool, ids: readonly string[]): void {
  const nodes = ids.map(
    (id) => `  - { id: ${id}, status: open, exec: ${JSON.stringify(untilLetGo(pool, id))} }\n`,
  );
  const staged = join(pool.dir, "roadmap.new");
  fs.writeFileSync(
    staged,
    `nodes:\n  - { id: plan-000, type: plan, status: done }\n${nodes.join("")}`,
  );
  fs.renameSync(staged, roadmapOf(pool));
}

/** Empty in the instant in which the file is taken away to be replaced. */
function statuses(pool: Pool): Record<string, string> {
  try {
    const { nodes } = parse(readPlan(roadmapOf(pool))) as {
      nodes: { id: string; status: string }[];
    };
    return Object.fromEntries(nodes.map(({ id, status }) => [id, status]));
  } catch {
    return {};
  }
}

const until = (pool: Pool, id: string, status: string): Promise<boolean> =>
  waitFor(() => statuses(pool)[id] === status, { what: `${id} to be ${status}` });

const started = (pool: Pool): unknown[] =>
  pool
    .events()
    .filter(({ event }) => event === "started")
    .map(({ task_id }) => task_id);

const launched = (pool: Pool): string[] | undefined =>
  readJson<{ launched?: string[] }>(join(pool.state, "control.json"))?.launched;

async function pause(pool: Pool): Promise<void> {
  expect((await pool.run(["pause", "--wait"])).code).toBe(0);
}

/** The only slot is taken by a plain task, and the task of the node `late`, which is in progress, waits in the inbox. */
async function launchBehind(pool: Pool): Promise<void> {
  pool.drop("first", { exec: untilLetGo(pool, "first") });
  await waitFor(() => started(pool).includes("first"), { what: "the plain task to run" });
  plan(pool, ["late"]);
  await until(pool, "late", "in_progress");
}

describe("a pause between a node's mark and its run", () => {
  test("lets the node run when its task still waits in the inbox, and nothing else", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    await launchBehind(pool);
    await pause(pool);
    pool.drop("other", { exec: ["true"], priority: 999 });
    letGo(pool, "first");
    letGo(pool, "late");
    await until(pool, "late", "done");
    // Whatever a pause lets slip would have been launched by the time a second command is carried out.
    await pause(pool);
    expect(started(pool)).toEqual(["first", "late"]);
    await waitFor(() => launched(pool)?.length === 0, { what: "the launch to be forgotten" });
    expect((await pool.run(["resume", "--wait"])).code).toBe(0);
    await pool.result("other");
  });

  test("lets the node run when a worker has been offered its task and not claimed it", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    const worker = await waitFor(() => pool.workers()[0]?.pid, { what: "the worker" });
    pool.drop("warm", { exec: ["true"] });
    await pool.result("warm");
    process.kill(worker, "SIGSTOP");
    plan(pool, ["late"]);
    await waitFor(() => fs.readdirSync(pool.processing).some((file) => file.includes("~ready")), {
      what: "the node's task to be accepted",
    });
    await pause(pool);
    expect(launched(pool)).toEqual(["late"]);
    process.kill(worker, "SIGCONT");
    letGo(pool, "late");
    await until(pool, "late", "done");
  });

  test("holds for the node's next run: one that fails waits for its retry until the pause is over", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    pool.drop("first", { exec: untilLetGo(pool, "first") });
    await waitFor(() => started(pool).includes("first"), { what: "the plain task to run" });
    const nodes = "nodes:\n  - { id: late, status: open, exec: [sh, -c, 'exit 1'] }\n";
    fs.writeFileSync(roadmapOf(pool), nodes);
    await until(pool, "late", "in_progress");
    await pause(pool);
    letGo(pool, "first");
    await waitFor(() => pool.events().some(({ event }) => event === "retry_scheduled"), {
      what: "the node to wait for its retry",
    });
    await waitFor(() => launched(pool)?.length === 0, { what: "the launch to be forgotten" });
    await pause(pool);
    expect(started(pool)).toEqual(["first", "late"]);
    expect((await pool.run(["resume", "--wait"])).code).toBe(0);
    await until(pool, "late", "failed");
  });

  test("is remembered by the next supervisor", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    await launchBehind(pool);
    await pause(pool);
    await pool.killAll();
    letGo(pool, "first");
    letGo(pool, "late");
    await pool.start(["--workers", "1", "--no-live"]);
    await until(pool, "late", "done");
    expect(started(pool)).toEqual(["first", "late"]);
  });

  test("opens the node again when a supervisor that knew of no pause has died over its launch", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    await launchBehind(pool);
    await pool.killAll();
    letGo(pool, "first");
    const running = await pool.start(["--workers", "1", "--no-live", "--paused"]);
    await until(pool, "late", "open");
    await waitFor(() => !fs.existsSync(join(pool.inbox, "late.json")), {
      what: "its task to be taken out of the inbox",
    });
    letGo(pool, "late");
    expect((await pool.run(["resume", "--wait"])).code).toBe(0);
    await until(pool, "late", "done");
    running.child.kill("SIGTERM");
    await once(running.child, "exit");
  });

  test("does not keep a node from being cancelled", async () => {
    const pool = newPool();
    await pool.start(["--workers", "1", "--no-live"]);
    await launchBehind(pool);
    await pause(pool);
    expect((await pool.run(["control", "cancel", "--node", "late", "--wait"])).code).toBe(0);
    expect(statuses(pool)["late"]).toBe("open");
    letGo(pool, "first");
    await pool.result("first");
    await pause(pool);
    expect(started(pool)).toEqual(["first"]);
    expect(statuses(pool)["late"]).toBe("open");
  });
});

/** As those scripts do that steer a plan: they look at the plan only, and give a command at once. */
describe("commands that follow the status of a node at once", () => {
  test("pause stops the launch of new nodes, what is in progress gets done, and resume goes on", async () => {
    const pool = newPool();
    plan(pool, ["task-a", "task-b"]);
    const running = await pool.start(["--drain", "--workers", "1", "--no-live"]);
    await until(pool, "task-a", "in_progress");
    await pause(pool);
    letGo(pool, "task-a");
    await until(pool, "task-a", "done");
    await pause(pool);
    expect(statuses(pool)["task-b"]).toBe("open");
    letGo(pool, "task-b");
    expect((await pool.run(["control", "resume"])).code).toBe(0);
    expect((await running.ended).exitCode).toBe(0);
  });

  test("set-workers has fewer nodes run at once from then on", async () => {
    const pool = newPool();
    plan(pool, ["a", "b", "c"]);
    const running = await pool.start(["--drain", "--workers", "2", "--no-live"]);
    await until(pool, "b", "in_progress");
    expect((await pool.run(["control", "set-workers", "--workers", "1"])).code).toBe(0);
    letGo(pool, "a");
    await until(pool, "a", "done");
    expect(statuses(pool)).toMatchObject({ b: "in_progress", c: "open" });
    letGo(pool, "b");
    await until(pool, "c", "in_progress");
    expect(statuses(pool)["b"]).toBe("done");
    letGo(pool, "c");
    expect((await running.ended).exitCode).toBe(0);
  });

  test("cancel opens a node again that is in progress, and a pause keeps it from beginning anew", async () => {
    const pool = newPool();
    plan(pool, ["task-long"]);
    const running = await pool.start(["--drain", "--workers", "1", "--no-live"]);
    await until(pool, "task-long", "in_progress");
    expect((await pool.run(["control", "pause"])).code).toBe(0);
    expect((await pool.run(["control", "cancel", "--node", "task-long", "--wait"])).code).toBe(0);
    expect(statuses(pool)["task-long"]).toBe("open");
    expect((await pool.run(["node", "set-status", "task-long", "done"])).code).toBe(0);
    expect((await pool.run(["control", "resume"])).code).toBe(0);
    expect((await running.ended).exitCode).toBe(0);
    expect(statuses(pool)["task-long"]).toBe("done");
  });
});
