/** `continue`: a new task in the session of a finished one, through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { CostRecord } from "../../../src/agents/cost-records.ts";
import type { SessionDocument } from "../../../src/agents/stream/session-file.ts";
import { costsOf } from "../../../src/core/state-tree.ts";
import { filesOfDays } from "../../../src/journal/daily.ts";
import { type Pool, readJson } from "../../support/pool.ts";
import { programPath } from "../../support/programs.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newTalkPool, UNTIL_GO } from "./talk-pool.ts";

takeSome();

/** What the newest run of a task has left of its session. */
function sessionOf(pool: Pool, id: string): SessionDocument | undefined {
  const run = pool
    .runs()
    .filter((one) => one.includes(`/${id}@`))
    .sort()
    .at(-1);
  return readJson(join(pool.state, "runs", run ?? "", "session.json"));
}

async function goOn(pool: Pool, id: string, text: string): Promise<string> {
  const { code, stdout, stderr } = await pool.run(["continue", id, text]);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout.trim();
}

it.each(["claude", "codex"])(
  "goes on in the session of a completed task of %s, and books only what is new",
  async (agent) => {
    const pool = newTalkPool({ FIRST: [[{ say: "one" }]], SECOND: [[{ say: "two" }]] });
    await pool.start();
    const cwd = join(pool.dir, "work");
    fs.mkdirSync(cwd);
    pool.drop("a", { agent, prompt: "FIRST", cwd });
    await pool.result("a");
    const b = await goOn(pool, "a", "SECOND");
    expect(await pool.result(b)).toMatchObject({ output: "two", agent_id: agent });
    expect(sessionOf(pool, b)).toMatchObject({
      session_id: sessionOf(pool, "a")?.session_id,
      cwd,
      task_id: b,
    });
    const { stdout } = await pool.run(["cost", "--by", "task", "--json"]);
    const { rows } = JSON.parse(stdout) as { rows: { key: string; input_tokens: number }[] };
    const tokens = new Map(rows.map((row) => [row.key, row.input_tokens]));
    expect(tokens.get(b)).toBe(tokens.get("a"));
  },
);

it("`show` names the command with which a person goes on in the session of an ended task", async () => {
  const pool = newTalkPool({ SLOW: [[{ run: UNTIL_GO }]] });
  const commandOf = async (id: string): Promise<unknown> => {
    const { stdout } = await pool.run(["show", id, "--json"]);
    return (JSON.parse(stdout) as { session_command: unknown }).session_command;
  };
  await pool.start();
  const cwd = join(pool.dir, "my work");
  fs.mkdirSync(cwd);
  pool.drop("a", { agent: "claude", prompt: "FIRST", cwd });
  pool.drop("b", { agent: "codex", prompt: "FIRST", cwd });
  pool.drop("c", { exec: ["true"] });
  for (const id of ["a", "b", "c"]) await pool.result(id);
  const ids = ["a", "b"].map((id) => sessionOf(pool, id)?.session_id ?? "");
  expect(await commandOf("a")).toBe(
    `cd '${fs.realpathSync(cwd)}' && ${programPath("fake-claude.mjs")} --resume ${ids[0]}`,
  );
  expect(await commandOf("b")).toBe(
    `cd '${fs.realpathSync(cwd)}' && CODEX_HOME=${join(pool.dir, "fake")} ${programPath("fake-codex.mjs")} resume ${ids[1]}`,
  );
  expect((await pool.run(["show", "a"])).stdout).toContain(`--resume ${ids[0]}`);
  expect(await commandOf("c")).toBeNull();
  // While mailchute has the session, no person may go on in it.
  pool.drop("d", { agent: "claude", prompt: "SLOW", cwd });
  await waitFor(() => pool.runs().some((run) => run.includes("/d@")), { what: "its run" });
  expect(await commandOf("d")).toBeNull();
  fs.writeFileSync(join(cwd, "go"), "");
  await pool.result("d");
  fs.rmSync(cwd, { recursive: true });
  expect(await commandOf("a")).toBeNull();
});

it.each(["claude", "codex"])(
  "books each run of %s once, also after retries by hand",
  async (agent) => {
    const pool = newTalkPool({});
    await pool.start();
    pool.drop("a", { agent, prompt: "FIRST" });
    await pool.result("a");
    const b = await goOn(pool, "a", "SECOND");
    await pool.result(b);
    const tokensOf = async (id: string): Promise<number> => {
      const { stdout } = await pool.run(["cost", "--task", id, "--json"]);
      return (JSON.parse(stdout) as { total: { input_tokens: number } }).total.input_tokens;
    };
    const one = await tokensOf("a");
    expect(one).toBeGreaterThan(0);
    expect(await tokensOf(b)).toBe(one);
    for (const runs of [2, 3]) {
      expect((await pool.run(["retry", b, "--completed"])).code).toBe(0);
      await waitFor(() => pool.runs().length === runs + 1, { what: "the next run" });
      await pool.result(b);
      expect(await tokensOf(b)).toBe(runs * one);
    }
  },
);

it("books a run of codex once that was killed, and whose task was retried by hand", async () => {
  const spend = { spend: { input: 500, output: 5 } };
  const work = [{ say: "I begin." }, spend, { run: UNTIL_GO }, { say: "two" }];
  const pool = newTalkPool({ SECOND: [work] });
  await pool.start();
  pool.drop("a", { agent: "codex", prompt: "FIRST", cwd: pool.dir });
  await pool.result("a");
  const b = await goOn(pool, "a", "SECOND");
  const running = join(pool.state, "analytics", "running-costs");
  const textsIn = (dir: string): string[] =>
    fs.existsSync(dir)
      ? fs.readdirSync(dir).map((name) => fs.readFileSync(join(dir, name), "utf8"))
      : [];
  await waitFor(() => textsIn(running).some((text) => text.includes('"input_tokens": 500')), {
    what: "what it has used",
  });
  await pool.killAll();
  fs.writeFileSync(join(pool.dir, "go"), "");
  await pool.start();
  await pool.result(b);
  const booked = (): CostRecord[] =>
    filesOfDays(costsOf({ dir: pool.state }))
      .flatMap((file) => fs.readFileSync(file, "utf8").trim().split("\n"))
      .map((line) => JSON.parse(line) as CostRecord);
  const count = booked().length;
  expect((await pool.run(["retry", b, "--completed"])).code).toBe(0);
  await waitFor(() => booked().length > count, { what: "the next run" });
  // The program keeps the sum of the session, over all its runs. Its stream leaves out the turn in which it was killed.
  const sessions = join(pool.dir, "fake", "sessions");
  const [rollout = ""] = fs
    .readdirSync(sessions, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"));
  const text = fs.readFileSync(join(sessions, rollout), "utf8");
  const sums = [...text.matchAll(/"token_usage_record".*?"input_tokens":(\d+)/g)].map(([, n]) =>
    Number(n),
  );
  expect(booked().reduce((sum, one) => sum + one.input_tokens, 0)).toBe(Math.max(...sums));
});

it("goes on in the session of a failed task, and tells it the new prompt only", async () => {
  const pool = newTalkPool({ FIRST: [[{ say: "one" }, { fail: 400 }]] });
  await pool.start();
  pool.drop("a", { agent: "claude", prompt: "FIRST" });
  await pool.error("a");
  // A request that is refused for its content pauses the agent at once.
  expect((await pool.run(["resume", "--agent", "claude"])).code).toBe(0);
  const b = await goOn(pool, "a", "try another way");
  expect(await pool.result(b)).toMatchObject({ output: "ok" });
  const shown = (await pool.run(["logs", b])).stdout;
  expect(shown).toContain("> try another way\n");
  expect(shown).not.toContain("What was done before");
});

it("gives a session to one task at a time, and to the last one for good", async () => {
  const pool = newTalkPool({});
  await pool.start();
  pool.drop("a", { agent: "claude", prompt: "x" });
  await pool.result("a");
  await pool.stop();
  const b = await goOn(pool, "a", "more");
  const refused = await pool.run(["continue", "a", "and more"]);
  expect(refused.code).toBe(4);
  expect(refused.stderr).toContain(`has gone on in "${b}", which is waiting`);
  const early = await pool.run(["continue", b, "even more"]);
  expect(early.code).toBe(4);
  await pool.start();
  await pool.result(b);
  const c = await goOn(pool, "a", "and more");
  await pool.result(c);
  expect(sessionOf(pool, c)?.session_id).toBe(sessionOf(pool, "a")?.session_id);
  expect((await pool.run(["retry", b, "--completed"])).code).toBe(0);
  expect(await pool.error(b)).toMatchObject({
    code: "ErrSessionTaken",
    error: `the task ${c} has continued its session: continue that task`,
  });
});

it("lets one of many that take a session at once have it", async () => {
  const pool = newTalkPool({});
  await pool.start();
  pool.drop("a", { agent: "claude", prompt: "x" });
  await pool.result("a");
  await pool.stop();
  const ends = await Promise.all(
    Array.from({ length: 6 }, () => pool.run(["continue", "a", "more"])),
  );
  expect(ends.filter(({ code }) => code === 0)).toHaveLength(1);
  expect(ends.filter(({ code }) => code === 4)).toHaveLength(5);
});

it("refuses what has no session, what runs, and a folder that is gone", async () => {
  const pool = newTalkPool({});
  await pool.start();
  const cwd = join(pool.dir, "work");
  fs.mkdirSync(cwd);
  pool.drop("plain", { exec: ["true"] });
  pool.drop("a", { agent: "claude", prompt: "x", cwd });
  pool.drop("later", { agent: "claude", prompt: "x", not_before: 4_000_000_000 });
  await pool.result("plain");
  await pool.result("a");
  fs.rmdirSync(cwd);
  const why = async (id: string): Promise<string> => {
    const { code, stderr } = await pool.run(["continue", id, "more"]);
    return `${code} ${stderr.split("\n")[0]}`;
  };
  expect(await why("none")).toMatch(/^3 .*no tray has a task "none"/);
  expect(await why("plain")).toMatch(/^4 .*has left no session/);
  expect(await why("later")).toMatch(/^4 .*has not ended: it is waiting/);
  expect(await why("a")).toMatch(/^4 .*its folder .* is gone/);
});
