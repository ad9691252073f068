/** A session goes on after a kill, a stop and a retry; one that is gone is replaced once; two programs never have the same one. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TaskMessages } from "../../../src/agents/stream/task-messages.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const HALF = { say: "I have read the code." };
const DONE = { say: "Done." };

/** @param backoffMs so long between two runs that a test can do something there */
function benchOf(kind: Kind, turns: readonly (readonly Step[])[], backoffMs = 20): Bench {
  return newBench([{ name: "coder", kind, turns }], { backoffMs });
}

const drop = (bench: Bench, more: object = {}): void =>
  bench.pool.drop("task", { agent: "coder", prompt: "the task", ...more });

/** It is in the middle of a tool call. */
async function hasOpenTool(bench: Bench): Promise<void> {
  await waitFor(() => bench.log("coder").some(({ event_type: type }) => type === "tool_started"), {
    what: "the tool call",
  });
}

function sessionOf(bench: Bench): string {
  const id = bench.session("task")?.session_id;
  expect(id).toEqual(expect.any(String));
  return String(id);
}

describe.each(KINDS)("%s", (kind) => {
  it("goes on in its session after its worker was killed, and is told why", async () => {
    const bench = benchOf(kind, [[HALF, { run: "sleep 60" }], [DONE]]);
    const { pool } = bench;
    await pool.start();
    drop(bench);
    await hasOpenTool(bench);
    const id = sessionOf(bench);
    for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 2 });
    expect(bench.resumed("coder")).toEqual([undefined, id]);
    const [, told = ""] = bench.messages("coder");
    expect(told).toContain("the process that ran it was killed");
    expect(told).toContain(HALF.say);
    expect(bench.session("task")).toBeUndefined();
  });

  it("goes on in its session after a stop of the supervisor, and uses no attempt", async () => {
    const bench = benchOf(kind, [[HALF, { run: "sleep 60" }], [DONE]]);
    const { pool } = bench;
    await pool.start();
    drop(bench);
    await hasOpenTool(bench);
    const id = sessionOf(bench);
    const [first] = bench.starts("coder");
    await pool.stop();
    expect(pool.pids()).toEqual([]);
    expect(bench.session("task")).toMatchObject({ session_id: id, account: "coder" });
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 1 });
    expect(bench.resumed("coder")).toEqual([undefined, id]);
    expect(first).toBeDefined();
  });

  it("goes on in its session after a crash of the machine, and uses no attempt", async () => {
    const bench = benchOf(kind, [[HALF, { run: "sleep 60" }], [DONE]]);
    const { pool } = bench;
    await pool.start();
    drop(bench, { max_attempts: 1 });
    await hasOpenTool(bench);
    const id = sessionOf(bench);
    await pool.killAll();
    const [claim = ""] = fs.readdirSync(pool.processing).filter((name) => name.includes("~w-"));
    const [, before = "", boot = ""] = /^(.*~w-[0-9a-f]{4})([0-9a-f]{4})/.exec(claim) ?? [];
    const other = boot === "0000" ? "0001" : "0000";
    fs.renameSync(
      join(pool.processing, claim),
      join(pool.processing, `${before}${other}${claim.slice(before.length + boot.length)}`),
    );
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 1 });
    expect(bench.resumed("coder")).toEqual([undefined, id]);
    expect(bench.messages("coder").at(-1)).toContain("the process that ran it was killed");
  });

  it("books each of two runs that two workers had in folders of one name", async () => {
    const bench = benchOf(kind, [
      [{ usage: { input: 10, cost: 0.1 } }, { kill: "SIGINT" }],
      [DONE],
    ]);
    const { pool } = bench;
    await pool.start();
    drop(bench);
    await pool.result("task");
    const { stdout } = await pool.run(["cost", "--json"]);
    const { total } = JSON.parse(stdout);
    const booked = bench.costs("coder").reduce((sum, one) => sum + one.input_tokens, 0);
    expect(total.input_tokens).toBe(booked);
  });

  it("replaces a session that is gone by one new session, which is told what the old one left", async () => {
    const lose = { run: 'rm "$FAKE_AGENT_STATE"/session-*' };
    const bench = benchOf(kind, [[HALF, lose, { exit: 1 }], [DONE]]);
    const { pool } = bench;
    await pool.start();
    drop(bench);
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 2 });
    expect(bench.resumed("coder")).toEqual([undefined, expect.any(String), undefined]);
    const told = bench.messages("coder").at(-1);
    expect(told).toContain("the task");
    expect(told).toContain("An earlier session worked on this task and is gone");
    expect(told).toContain(HALF.say);
  });

  it("begins a new session when its directory has changed", async () => {
    const move = { run: 'ln -sfn b "$MAILCHUTE_STATE/../work"' };
    const bench = benchOf(kind, [[HALF, move, { exit: 1 }], [DONE]]);
    const { pool } = bench;
    for (const name of ["a", "b"]) fs.mkdirSync(join(pool.dir, name));
    fs.symlinkSync("a", join(pool.dir, "work"));
    await pool.start();
    drop(bench, { cwd: "work" });
    await pool.result("task");
    expect(bench.resumed("coder")).toEqual([undefined, undefined]);
    expect(bench.messages("coder").at(-1)).toContain(HALF.say);
  });

  it("never has two programs in one session, whatever is killed", async () => {
    const bench = benchOf(kind, [
      [HALF, { run: "sleep 60" }],
      [HALF, { ignore: "SIGTERM" }, { run: "sleep 60" }],
      [{ run: "sleep 60" }],
      [DONE],
    ]);
    const { pool } = bench;
    const isAlive = (pid: number): boolean => pool.pids().includes(pid);
    const overlaps: number[] = [];
    let seen = 0;
    const look = (): void => {
      const starts = bench.starts("coder");
      for (; seen < starts.length; seen++)
        overlaps.push(...starts.slice(0, seen).flatMap(({ pid }) => (isAlive(pid) ? [pid] : [])));
    };
    await pool.start();
    drop(bench, { max_attempts: 9 });
    for (let run = 1; run <= 3; run++) {
      await waitFor(
        () => {
          look();
          const log = bench.log("coder");
          return log.filter(({ event_type: type }) => type === "tool_started").length === run;
        },
        { what: `tool call ${run}` },
      );
      if (run === 2) {
        await pool.stop();
        await pool.start();
      } else for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
    }
    await waitFor(
      () => {
        look();
        return pool.results().length === 1;
      },
      { what: "the result" },
    );
    expect(overlaps).toEqual([]);
    expect(bench.starts("coder")).toHaveLength(4);
    expect(new Set(bench.resumed("coder").slice(1)).size).toBe(1);
  });
});

describe.each([
  ["claude", "claude", {}],
  ["codex", "codex", {}],
  ["codex app-server", "codex", { mode: "app-server" }],
] as const)("%s, killed early", (_, kind, settings) => {
  /** The program begins its session and is killed, once with the packet in its session and once without. */
  async function told(first: readonly Step[], say?: string): Promise<string[]> {
    const bench = newBench([{ name: "coder", kind, settings, turns: [first, [DONE]] }]);
    const { pool } = bench;
    drop(bench);
    if (say !== undefined) new TaskMessages(pool.state, "task", false).post(say, "cli");
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 2 });
    expect(bench.resumed("coder")).toEqual([undefined, expect.any(String)]);
    return bench.messages("coder");
  }

  // The sleep gives the worker the time to read the id of the session.
  const UNREAD = [{ unread: true }, { sleepMs: 300 }, { kill: "SIGKILL" }];

  it("is sent its task again, with the messages for it, when its session has not got them", async () => {
    const [first, second] = await told(UNREAD, "Also mend the other test.");
    for (const packet of [first, second]) {
      expect(packet).toContain("the task");
      expect(packet).toContain("Also mend the other test.");
    }
    expect(second).toContain("Look first at what is done already");
  });

  it("is not sent its task twice when its session has got it", async () => {
    const run = { run: "true" };
    const [, second] = await told([run, { sleepMs: 300 }, { kill: "SIGKILL" }], "A message.");
    expect(second).toContain("Go on where you were");
    expect(second).not.toContain("A message.");
  });
});

it("takes a codex that begins a new thread for one that has lost its session", async () => {
  const bench = benchOf("codex", [[HALF, { exit: 1 }], [{ run: "sleep 60" }], [DONE]], 4000);
  const { pool } = bench;
  await pool.start();
  drop(bench);
  await waitFor(() => bench.session("task")?.hand_off.includes("no end"), { what: "its end" });
  const path = String(bench.sessionPath("task"));
  fs.writeFileSync(path, JSON.stringify({ ...bench.session("task"), session_id: "no-id" }));
  expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 2 });
  expect(bench.resumed("coder")).toEqual([undefined, "no-id", undefined]);
  expect(bench.messages("coder").at(-1)).toContain("the task");
});
