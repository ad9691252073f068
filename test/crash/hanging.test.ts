/** Real processes that live but hang: stopped workers, blocked threads, a stopped supervisor. And one that only computes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, type Pool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const STALL_MS = 1500;
const CONFIG = `${QUICK_CONFIG}stall_ms: ${STALL_MS}\nworkers: 1\n`.replace("workers: 4\n", "");
/** The first attempt does this; a later one succeeds at once. */
const first = (script: string): string[] => [
  "sh",
  "-c",
  `[ "$MAILCHUTE_ATTEMPT" -gt 1 ] && exit 0; ${script}`,
];

function toldOfWorker(pool: Pool): string | undefined {
  const found = pool.alerts().map(({ message }) => String(message));
  return found.find((text) => text.includes("was alive but had not moved"));
}

/** The letter of the state of a process; undefined when it has ended. */
function stateOf(pid: number): string | undefined {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    const letter = stat[stat.lastIndexOf(")") + 2];
    return letter === "Z" ? undefined : letter;
  } catch {
    return undefined;
  }
}

test("a worker that its own task stops is ended, and the task runs again with all its neighbours", async () => {
  const pool = newPool({ config: CONFIG });
  await pool.start();
  pool.drop("stops", { exec: first("kill -STOP $PPID; exec sleep 600"), priority: 5 });
  pool.drop("next", { exec: ["true"] });
  expect(await pool.result("stops", 20_000)).toMatchObject({ attempts: 2 });
  await pool.result("next");
  expect(toldOfWorker(pool)).toContain("its tasks are taken back");
});

test("with mailbox_enabled: false a worker that an earlier supervisor left, and that hangs, is ended, too; its task waits for the mailbox", async () => {
  const pool = newPool({ config: CONFIG });
  const { child } = await pool.start();
  pool.drop("stops", { exec: first("kill -STOP $PPID; exec sleep 600") });
  const isStopped = (): boolean => pool.workers().some(({ pid }) => stateOf(pid) === "T");
  await waitFor(isStopped, { what: "the worker to stop" });
  const [worker] = pool.workers();
  child.kill("SIGKILL");
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${CONFIG}mailbox_enabled: false\nheartbeat_ms: 500\n`,
  );
  await pool.start();
  await waitFor(() => stateOf(worker?.pid ?? 0) === undefined, {
    timeoutMs: 20_000,
    what: "the end of the worker",
  });
  expect(toldOfWorker(pool)).toContain("its tasks are taken back when mailbox_enabled is true");
  expect(fs.readdirSync(pool.processing)).toEqual([expect.stringMatching(/^stops@.*~w-/)]);
  await pool.stop();
  fs.writeFileSync(join(pool.state, "config.yaml"), CONFIG);
  await pool.start();
  expect(await pool.result("stops", 20_000)).toMatchObject({ attempts: 2 });
});

test("a worker whose thread is blocked ends itself, also without a supervisor that looks", async () => {
  const env: Record<string, string> = {};
  const pool = newPool({ config: CONFIG, env });
  const [hook, block] = [join(pool.dir, "hook.cjs"), join(pool.dir, "block")];
  // As a read of a pipe that has no writer would block it.
  fs.writeFileSync(
    hook,
    `const fs = require("node:fs");
if (process.env.MAILCHUTE_WORKER_BOOT !== undefined && !fs.existsSync(${JSON.stringify(`${block}ed`)}))
  setInterval(() => {
    if (!fs.existsSync(${JSON.stringify(block)})) return;
    fs.writeFileSync(${JSON.stringify(`${block}ed`)}, "");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }, 20);
`,
  );
  env["NODE_OPTIONS"] = `--require=${hook}`;
  await pool.start();
  pool.drop("blocked", { exec: first(`touch ${block}; exec sleep 600`) });
  expect(await pool.result("blocked", 20_000)).toMatchObject({ attempts: 2 });
  expect(toldOfWorker(pool)).toBeDefined();
  // Its own heartbeat thread has ended it: the supervisor saw a file that was touched all the time.
  expect(pool.events()).toContainEqual(
    expect.objectContaining({ event: "worker_stopped", error: "SIGALRM" }),
  );
});

test("a function that computes for longer than stall_ms is left alone", async () => {
  const config = `${CONFIG}agents: [{name: thinker, kind: module, module: ./thinker.mjs}]\n`;
  const pool = newPool({ config });
  fs.writeFileSync(
    join(pool.state, "thinker.mjs"),
    `export default () => {
  for (const end = Date.now() + ${2 * STALL_MS}; Date.now() < end; );
  return { verdict: "pass" };
};
`,
  );
  await pool.start();
  pool.drop("think", { agent: "thinker" });
  expect(await pool.result("think", 20_000)).toMatchObject({ attempts: 1, verdict: "pass" });
  expect(toldOfWorker(pool)).toBeUndefined();
});

test("while the supervisor hangs, its worker finishes what it runs, takes nothing new, and says so", async () => {
  const pool = newPool({ config: CONFIG });
  const { child, pid } = await pool.start();
  const go = join(pool.dir, "go");
  pool.drop("runs", { exec: ["sh", "-c", `until [ -e ${go} ]; do sleep 0.05; done`] });
  const isRunning = (): boolean => fs.readdirSync(pool.processing).some((n) => n.includes("~w-"));
  await waitFor(isRunning, { what: "the first task to run" });
  child.kill("SIGSTOP");
  const told = await waitFor(
    () => pool.alerts().find(({ message }) => String(message).includes("takes nothing new")),
    { timeoutMs: 20_000, what: "the alert of the worker" },
  );
  expect(told["message"]).toContain(`the supervisor (pid ${pid}) is alive but has not moved`);
  const health = await pool.run(["health", "--late", `${STALL_MS}ms`]);
  expect(health.code).toBe(1);
  expect(health.stdout).toContain("last heartbeat");
  // An accepted task, which any worker may claim. Its output says whether the supervisor was stopped when it ran.
  const accepted = join(pool.processing, "waits@abcdefgh261127.1~ready.json");
  fs.writeFileSync(
    accepted,
    JSON.stringify({ id: "waits", exec: ["cut", "-d ", "-f3", `/proc/${pid}/stat`] }),
  );
  fs.writeFileSync(go, "");
  await pool.result("runs");
  expect(fs.existsSync(accepted)).toBe(true);
  child.kill("SIGCONT");
  expect((await pool.result("waits")).output).not.toContain("T");
});
