/** `interrupt`: an agent stops what it does, and goes on in its session with a text; through real processes, with stand-ins for programs. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { newBench } from "../../agents/runs/bench.ts";
import { newTalkPool, UNTIL_GO } from "../../agents/talk/talk-pool.ts";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { streamsOf } from "./mail-pool.ts";

takeSome();

const BIN = fileURLToPath(new URL("../../../bin/mailchute.js", import.meta.url));
const CLI = `${process.execPath} ${BIN}`;
const SLOW_MS = 60_000;
const AT_WORK = { GO: [[{ run: UNTIL_GO }, { say: "Done." }]] };

/** Starts a task of this agent that works until it is stopped. */
async function startWork(agent: string): Promise<Pool> {
  const pool = newTalkPool(AT_WORK);
  pool.drop("a", { agent, prompt: "GO", cwd: pool.dir });
  await pool.start();
  await waitFor(() => streamsOf(pool).join().includes("until test"), { what: "the tool call" });
  return pool;
}

const sessionsOf = (pool: Pool): Set<string | undefined> => {
  const ids = streamsOf(pool)
    .join()
    .matchAll(/"(?:thread_id|threadId|session_id)":"([^"]+)"/g);
  return new Set([...ids].map(([, id]) => id));
};

it.each(["claude", "server"])(
  "ends the turn of %s, which goes on in the same run with the text",
  async (agent) => {
    const pool = await startWork(agent);
    const done = await pool.run(["interrupt", "a", "look at X first", "--wait"]);
    expect(done).toMatchObject({
      code: 0,
      stdout: "a: its turn has ended, and the same run goes on with your text\n",
    });
    expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
    expect(pool.runs()).toHaveLength(1);
    const [stream = ""] = streamsOf(pool);
    expect(stream).toMatch(/aborted_tools|interrupted/);
    expect(stream).not.toContain("Done.");
    const told = fs.readFileSync(join(pool.dir, "fake", "messages.jsonl"), "utf8").trimEnd();
    expect(told.split("\n").at(-1)).toContain("look at X first");
  },
);

it("stops the run of a codex, whose next run goes on in the session, and uses up no attempt", async () => {
  const pool = await startWork("codex");
  const done = await pool.run(["interrupt", "Codex", "look at X first", "--wait", "--json"]);
  expect(done).toMatchObject({ code: 0 });
  expect(JSON.parse(done.stdout)).toMatchObject({
    command: "interrupt",
    args: { node: "a", text: "look at X first" },
    result: { interrupted: "a", message: 1, goes_on: "run" },
  });
  expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
  expect(pool.runs()).toHaveLength(2);
  expect(sessionsOf(pool).size).toBe(1);
  const told = fs.readFileSync(join(pool.dir, "fake", "messages.jsonl"), "utf8");
  expect(told.match(/look at X first/g)).toHaveLength(1);
});

it("without a text tells the agent that it was interrupted", async () => {
  const pool = await startWork("claude");
  expect(await pool.run(["interrupt", "@claude"])).toMatchObject({ code: 0 });
  await pool.result("a", SLOW_MS);
  const told = fs.readFileSync(join(pool.dir, "fake", "messages.jsonl"), "utf8");
  expect(told).toContain("You were interrupted by a person, who said nothing more");
});

it("stops an agent that does not end its turn, and its next run goes on", async () => {
  const pool = newTalkPool({ GO: [[{ say: "I begin" }, { hang: true }]] });
  pool.drop("a", { agent: "claude", prompt: "GO" });
  await pool.start();
  await waitFor(() => streamsOf(pool).join().includes("I begin"), { what: "the run" });
  const done = await pool.run(["interrupt", "a", "go on", "--wait"]);
  expect(done.stdout).toContain("its run was stopped, and the next one goes on");
  expect(await pool.result("a", SLOW_MS)).toMatchObject({ output: "ok", attempts: 1 });
  expect(sessionsOf(pool).size).toBe(1);
});

it("says that nothing runs, what it cannot interrupt, and which runs there are", async () => {
  const pool = newTalkPool(AT_WORK);
  pool.drop("later", { agent: "codex", prompt: "x", not_before: 4_000_000_000 });
  pool.drop("plain", { exec: ["sleep", "1000"] });
  for (const id of ["a", "b"]) pool.drop(id, { agent: "claude", prompt: "GO", cwd: pool.dir });
  await pool.start();
  await waitFor(
    () =>
      streamsOf(pool)
        .join()
        .match(/until test/g)?.length === 2,
    {
      what: "both runs",
      timeoutMs: SLOW_MS,
    },
  );
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.startsWith("plain@")), {
    what: "the program",
  });
  const refusal = async (named: string, ...more: string[]) => {
    const { code, stderr } = await pool.run(["interrupt", named, "x", ...more]);
    return `${code} ${stderr}`;
  };
  expect(await refusal("nobody")).toMatch(/^3 .*there is no task and no agent "nobody"/);
  expect(await refusal("codex")).toMatch(/^4 .*nothing of "codex" runs[\s\S]*say TEXT --to codex/);
  expect(await refusal("later")).toMatch(/^4 .*nothing of "later" runs[\s\S]*say later TEXT/);
  expect(await refusal("claude")).toMatch(/^4 .*"claude" has 2 runs[\s\S]*(a, b|b, a)/);
  expect(await refusal("plain", "--wait")).toMatch(/^4 .*not a task of a coding agent/);
  // A command in a file is judged in the same way.
  const inbox = join(pool.state, "control", "inbox");
  const command = { command: "interrupt", args: { node: "later", text: "x" } };
  fs.writeFileSync(join(inbox, "c1.json"), JSON.stringify(command));
  const error = join(pool.state, "control", "failed", "c1_error.json");
  await waitFor(() => fs.existsSync(error), { what: "the refusal" });
  expect(fs.readFileSync(error, "utf8")).toContain('\\"later\\" does not run');
  await pool.killAll();
});

it("is no verb of a run", async () => {
  const script = `${CLI} interrupt other x 2> "$MAILCHUTE_STATE/../out"; true`;
  const turns = [[{ run: script }, { say: "ok" }]];
  const { pool } = newBench([
    { name: "Coder", kind: "claude", turns, settings: { account: "coder" } },
  ]);
  pool.drop("a", { agent: "Coder", prompt: "go" });
  await pool.start();
  await pool.result("a", SLOW_MS);
  expect(fs.readFileSync(join(pool.dir, "out"), "utf8")).toContain(
    "a run of an agent may not use `mailchute interrupt`",
  );
});
