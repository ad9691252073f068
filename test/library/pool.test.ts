/** A pool in the process of the caller: functions as handlers, beside all that a pool does, until it has drained or is stopped. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { Handler, Mailchute, RunSummary } from "../../src/index.ts";
import { QUICK_CONFIG } from "../support/pool.ts";
import { programPath } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

// The build: a heartbeat beats in a thread, which runs no TypeScript.
const { NoRetryError, open } = (await import(
  fileURLToPath(new URL("../../dist/index.js", import.meta.url))
)) as typeof import("../../src/index.ts");

async function openNew(): Promise<Mailchute> {
  const dir = join(tempDir(), "state");
  fs.mkdirSync(dir);
  fs.writeFileSync(join(dir, "config.yaml"), QUICK_CONFIG);
  return open(dir);
}

const names = ({ tree }: Mailchute, tray: string): string[] =>
  fs.readdirSync(join(tree.mailbox, tray));

/** Starts a pool, and stops it at the end of the test. */
function start(
  mailchute: Mailchute,
  handlers: Record<string, Handler>,
): { stop: () => Promise<RunSummary> } {
  const controller = new AbortController();
  const run = mailchute.pool({ handlers, signal: controller.signal });
  const stop = (): Promise<RunSummary> => {
    controller.abort();
    return run;
  };
  onTestFinished(async () => {
    await stop();
  });
  return { stop };
}

test("it drains: functions, programs, batches and dependencies, with retries and records as ever", async () => {
  const mailchute = await openNew();
  const n = (value: number) => ({ agent: "double", payload: { n: value } });
  await mailchute.enqueueAll([
    { id: "later", ...n(2), metadata: { dependencies: ["first"] } },
    { id: "first", ...n(1) },
    { id: "bad", ...n(-1) },
    { id: "hopeless", ...n(0) },
    { id: "program", exec: ["printf", "%s", "é"] },
    { id: "unknown", agent: "nobody" },
  ]);
  await mailchute.enqueueBatch([n(3), n(4)], { id: "batch" });
  const attempts: number[] = [];
  const summary = await mailchute.pool({
    drain: true,
    slots: 2,
    handlers: {
      double: ({ payload }, { attempt, log, progress }) => {
        const { n: value } = payload as { n: number };
        if (value === 0) throw new NoRetryError("zero");
        if (value < 0) attempts.push(attempt);
        if (value < 0) throw new Error("negative");
        progress({ percent: 50 });
        log("doubling", value);
        return { n: value * 2 };
      },
    },
  });
  expect(summary).toMatchObject({ completed: 4, failed: 2, blocked: 1, endedBy: "drained" });
  expect(attempts).toEqual([1, 2, 3]);
  expect(await mailchute.find("later")).toMatchObject({
    output: { n: 4 },
    record: { attempts: 1 },
  });
  expect(await mailchute.find("program")).toMatchObject({ output: "é" });
  expect(await mailchute.find("batch")).toMatchObject({ record: { batch: { completed: 2 } } });
  expect(await mailchute.find("bad")).toMatchObject({
    code: "ErrHandler",
    record: { attempts: 3 },
  });
  expect(await mailchute.find("hopeless")).toMatchObject({ record: { attempts: 1 } });
  expect(names(mailchute, "processing")).toEqual([]);
  expect(names(mailchute, "inbox")).toEqual(["unknown.json"]);
  expect(fs.readdirSync(mailchute.tree.workers).filter((name) => name.endsWith(".json"))).toEqual(
    [],
  );
});

test("while it runs it obeys commands, is the only pool, and says that it has these agents", async () => {
  const mailchute = await openNew();
  let running = 0;
  const { stop } = start(mailchute, {
    sleeps: (_task, { signal }) =>
      new Promise((_resolve, reject) => {
        running++;
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
    quick: () => "done",
  });
  await mailchute.enqueue({ id: "quick", agent: "quick" });
  expect(await mailchute.waitFor("quick")).toMatchObject({ output: "done" });
  await expect(mailchute.pool({ drain: true })).rejects.toMatchObject({
    code: "ErrSupervisorRunning",
  });
  await mailchute.command("pause");
  await mailchute.enqueueAll([
    { id: "held", agent: "sleeps" },
    { id: "nobody", agent: "nobody" },
  ]);
  const why: string[] = [];
  await expect(mailchute.waitFor("nobody")).rejects.toMatchObject({ code: "ErrTaskStuck" });
  const controller = new AbortController();
  await mailchute
    .waitFor("held", {
      signal: controller.signal,
      onStuck: ({ text }) => {
        why.push(text);
        controller.abort();
      },
    })
    .catch(() => {});
  expect(why[0]).toMatch(/^waits: claiming is paused since/);
  await mailchute.command("resume");
  await waitFor(() => running === 1, { what: "the start" });
  await mailchute.command("cancel", { node: "held", final: true });
  expect(await mailchute.waitFor("held")).toMatchObject({ code: "ErrCancelled" });
  await mailchute.enqueue({ id: "cut", agent: "sleeps" });
  await waitFor(() => running === 2, { what: "the second start" });
  expect(await stop()).toMatchObject({ endedBy: "stop", completed: 1, failed: 1 });
  // It was given back, and used up no run.
  expect(names(mailchute, "processing")).toEqual([
    expect.stringMatching(/^cut@\w+\.1~ready\.json$/),
  ]);
  const again = await mailchute.pool({ drain: true, handlers: { sleeps: () => "at last" } });
  expect(again).toMatchObject({ completed: 1 });
  expect(await mailchute.find("cut")).toMatchObject({ output: "at last", record: { attempts: 1 } });
});

test("a handler that does not heed its signal costs its own run, and the pool goes on", async () => {
  const mailchute = await openNew();
  start(mailchute, { hangs: () => new Promise(() => {}), quick: () => "done" });
  await mailchute.enqueue({ id: "stuck", agent: "hangs", timeout_ms: 50, max_attempts: 1 });
  expect(await mailchute.waitFor("stuck")).toMatchObject({ code: "ErrTimeout" });
  await mailchute.enqueue({ id: "after", agent: "quick" });
  expect(await mailchute.waitFor("after")).toMatchObject({ output: "done" });
});

test("bad options are told before anything starts", async () => {
  const mailchute = await openNew();
  const none = { handlers: { "a b": () => 1 } };
  await expect(mailchute.pool(none)).rejects.toMatchObject({ code: "ErrInvalidConfig" });
  await expect(mailchute.pool({ slots: 0 })).rejects.toMatchObject({ code: "ErrInvalidConfig" });
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(mailchute.pool({ signal })).rejects.toThrow("enough");
  expect(fs.existsSync(mailchute.tree.supervisor)).toBe(false);
});

test("what a killed pool was running runs again in the next one, and nothing is lost", async () => {
  const mailchute = await openNew();
  const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
  await mailchute.enqueueAll(ids.map((id) => ({ id, agent: "slow", max_attempts: 5 })));
  for (let round = 0; round < 2; round++) {
    const child = spawn(process.execPath, [
      programPath("library-handlers.mjs"),
      mailchute.tree.dir,
    ]);
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const least = (round + 1) * 2;
    await waitFor(() => names(mailchute, "outbox").length >= least, { what: "some results" });
    child.kill("SIGKILL");
    await ended;
  }
  const { completed, failed } = await mailchute.pool({ drain: true, handlers: { slow: () => 1 } });
  expect({ completed: completed > 0, failed }).toEqual({ completed: true, failed: 0 });
  expect(names(mailchute, "outbox").sort()).toEqual(ids.map((id) => `${id}_result.json`).sort());
  expect(names(mailchute, "processing")).toEqual([]);
});
