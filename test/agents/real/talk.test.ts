/** `say` and `continue` with the real programs: what the model gets to read, and how often. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { claudeAgainst, codexAgainst } from "../../../src/agents/mock-api/against.ts";
import type { Scenario } from "../../../src/agents/mock-api/script.ts";
import { type MockApi, startMockApi } from "../../../src/agents/mock-api/server.ts";
import { newPool, type Pool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { programPath } from "./install.ts";

const LONG_MS = 60_000;
/** A tool call that goes on until `letGo`. */
const UNTIL_GO = "until test -e go; do sleep 0.1; done; echo went";

interface RealPool {
  pool: Pool;
  api: MockApi;
  /** Where the tasks run. */
  work: string;
}

/** A pool whose agents `claude`, `codex` and `server` (a codex app-server) are the real programs, against an API that answers a scenario. */
async function newRealPool(scenario: Scenario): Promise<RealPool> {
  const api = await startMockApi(scenario, { isWhole: true });
  onTestFinished(() => api.close());
  const env: Record<string, string> = {};
  const pool = newPool({ env });
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const [home, work] = [join(pool.dir, "home"), join(pool.dir, "work")];
  for (const dir of [home, work]) fs.mkdirSync(dir);
  const options = { url: api.url, key: "not-a-key-0001", retries: 1 };
  const permissions = { mode: "full" };
  const claude = claudeAgainst(options);
  const codex = codexAgainst(options);
  const agents = [
    {
      name: "claude",
      kind: "claude",
      program: programPath("claude"),
      model: "claude-sonnet-4-5",
      permissions,
      args: claude.args,
      env: { ...claude.env, HOME: home, IS_SANDBOX: "1" },
    },
    {
      name: "codex",
      kind: "codex",
      program: programPath("codex"),
      model: "mock-model",
      permissions,
      args: codex.args,
      env: { ...codex.env, HOME: home },
    },
  ];
  const server = { ...agents[1], name: "server", mode: "app-server" };
  fs.writeFileSync(
    join(pool.state, "config.yaml"),
    `${QUICK_CONFIG}agents: ${JSON.stringify([...agents, server])}\n`,
  );
  return { pool, api, work };
}

/** What the model has been asked in its last request. */
const lastAsked = (api: MockApi): string =>
  api.requests
    .filter(({ kind }) => kind === "turn")
    .at(-1)
    ?.messages.join("\n") ?? "";

/** All lines of all runs. */
function streamOf(pool: Pool): string {
  return pool
    .runs()
    .sort()
    .map((run) => join(pool.state, "runs", run, "events.jsonl"))
    .map((path) => (fs.existsSync(path) ? fs.readFileSync(path, "utf8") : ""))
    .join("");
}

async function startWork({ pool, work }: RealPool, agent: string): Promise<void> {
  pool.drop("a", { agent, prompt: "go", cwd: work });
  await pool.start();
  await waitFor(() => streamOf(pool).includes("until test"), {
    what: "the tool call",
    timeoutMs: LONG_MS,
  });
}

it("tells a running claude something, which it reads after its tool call in the same run", async () => {
  const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }]);
  const { pool, api, work } = real;
  await startWork(real, "claude");
  const reading = pool.spawn(["say", "a", "look at X", "--wait", "read"]);
  await waitFor(() => streamOf(pool).split('"queued"').length === 3, { what: "the message" });
  fs.writeFileSync(join(work, "go"), "");
  expect(await reading.ended).toMatchObject({ exitCode: 0 });
  expect(await pool.result("a", LONG_MS)).toMatchObject({ output: "Done.", attempts: 1 });
  expect(lastAsked(api)).toContain("look at X");
  expect(pool.runs()).toHaveLength(1);
  const shown = (await pool.run(["logs", "a"])).stdout;
  expect(shown.indexOf("> look at X")).toBeGreaterThan(shown.indexOf("went"));
});

it("tells a claude something once that was killed before it read it", async () => {
  const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }]);
  const { pool, api, work } = real;
  await startWork(real, "claude");
  await pool.run(["say", "a", "look at X", "--wait", "offered"]);
  await waitFor(() => streamOf(pool).split('"queued"').length === 3, { what: "the message" });
  await pool.killAll();
  fs.writeFileSync(join(work, "go"), "");
  await pool.start();
  await pool.result("a", LONG_MS);
  expect(lastAsked(api)).toContain("look at X");
  expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
});

it("gives codex a message when its work is done, in the same session", async () => {
  const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }, { say: "Done with X." }]);
  const { pool, api, work } = real;
  await startWork(real, "codex");
  expect((await pool.run(["say", "a", "look at X"])).stdout).toBe("message 1 to a: recorded\n");
  fs.writeFileSync(join(work, "go"), "");
  expect(await pool.result("a", LONG_MS)).toMatchObject({ output: "Done with X.", attempts: 1 });
  expect(lastAsked(api)).toContain("look at X");
});

it.each(["claude", "codex", "server"])("goes on in the session of %s", async (agent) => {
  const { pool, api, work } = await newRealPool([{ say: "One." }, { say: "Two." }]);
  await pool.start();
  pool.drop("a", { agent, prompt: "the first question", cwd: work });
  await pool.result("a", LONG_MS);
  const { stdout } = await pool.run(["continue", "a", "the second question"]);
  expect(await pool.result(stdout.trim(), LONG_MS)).toMatchObject({ output: "Two." });
  expect(lastAsked(api)).toContain("the second question");
  // It has the whole conversation.
  expect(lastAsked(api)).toContain("the first question");
});

describe("a codex app-server", () => {
  const occurrences = (text: string, part: string): number => text.split(part).length - 1;

  it("reads a message after its tool call, in the same run", async () => {
    const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }]);
    const { pool, api, work } = real;
    await startWork(real, "server");
    const offered = await pool.run(["say", "a", "look at X", "--wait", "offered"]);
    expect(offered.stderr).toContain("reads it at its next step");
    const reading = pool.spawn(["say", "a", "and at Y", "--wait", "read"]);
    await waitFor(() => occurrences(streamOf(pool), '"result":{"turnId"') === 2, { what: "both" });
    fs.writeFileSync(join(work, "go"), "");
    expect(await reading.ended).toMatchObject({ exitCode: 0 });
    expect(await pool.result("a", LONG_MS)).toMatchObject({ output: "Done.", attempts: 1 });
    expect(lastAsked(api)).toMatch(/look at X[\s\S]*and at Y/);
    expect(pool.runs()).toHaveLength(1);
    const shown = (await pool.run(["logs", "a"])).stdout;
    expect(shown.indexOf("> look at X")).toBeGreaterThan(shown.indexOf("went"));
  });

  it("that was killed goes on in its thread, and reads once what it had not read", async () => {
    const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }]);
    const { pool, api, work } = real;
    await startWork(real, "server");
    await pool.run(["say", "a", "look at X", "--wait", "offered"]);
    await waitFor(() => streamOf(pool).includes('"result":{"turnId"'), { what: "the message" });
    await pool.killAll();
    fs.writeFileSync(join(work, "go"), "");
    await pool.start();
    await pool.result("a", LONG_MS);
    expect(occurrences(lastAsked(api), "look at X")).toBe(1);
    expect(occurrences(streamOf(pool), '"model":"mock-model"')).toBeGreaterThan(0);
    expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
  });

  it("that is cancelled ends its turn and its tools first", async () => {
    const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done." }]);
    const { pool } = real;
    await startWork(real, "server");
    await pool.run(["cancel", "a"]);
    expect(await pool.error("a", LONG_MS)).toMatchObject({ kind: "cancelled" });
    expect(streamOf(pool)).toContain('"status":"interrupted"');
  });

  it("without a right model fails as a wrong configuration", async () => {
    const { pool, work } = await newRealPool([{ status: 404 }]);
    await pool.start();
    pool.drop("a", { agent: "server", prompt: "go", cwd: work });
    expect(await pool.error("a", LONG_MS)).toMatchObject({ kind: "config" });
  });
});

it.each([
  ["claude", "turn", 1],
  ["server", "turn", 1],
  ["codex", "run", 2],
] as const)(
  "interrupts %s, which goes on in its session with the text (by a new %s)",
  async (agent, goesOn, runs) => {
    const real = await newRealPool([{ run: UNTIL_GO }, { say: "Done with X." }]);
    const { pool, api } = real;
    await startWork(real, agent);
    const answer = await pool.run(["interrupt", agent, "look at X", "--wait", "--json"]);
    expect(JSON.parse(answer.stdout).result).toMatchObject({ goes_on: goesOn });
    expect(await pool.result("a", LONG_MS)).toMatchObject({ output: "Done with X.", attempts: 1 });
    expect(lastAsked(api)).toContain("look at X");
    expect(lastAsked(api)).toContain("go");
    expect(pool.runs()).toHaveLength(runs);
  },
);
