/** `continue`: a new task in the session of a finished one, through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionDocument } from "../../../src/agents/stream/session-file.ts";
import { type Pool, readJson } from "../../support/pool.ts";
import { newTalkPool } from "./talk-pool.ts";

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

it("goes on in the session of a failed task, and tells it the new prompt only", async () => {
  const pool = newTalkPool({ FIRST: [[{ say: "one" }, { fail: 400 }]] });
  await pool.start();
  pool.drop("a", { agent: "claude", prompt: "FIRST" });
  await pool.error("a");
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
    error: `its session has gone on in the task ${c}: continue that one`,
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
