/** `say`: a message reaches a coding agent once, whether it runs, waits or is killed; through real processes. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Pool } from "../../support/pool.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { newTalkPool, UNTIL_GO } from "./talk-pool.ts";

takeSome();

const AT_WORK = { GO: [[{ run: UNTIL_GO }, { say: "Done." }]] };

/** Starts a task that works until `letGo`. */
async function startWork(pool: Pool, agent: string): Promise<void> {
  pool.drop("a", { agent, prompt: "GO", cwd: pool.dir });
  await pool.start();
  await waitFor(() => streamOf(pool).includes("until test"), { what: "the tool call" });
}

const letGo = (pool: Pool): void => fs.writeFileSync(join(pool.dir, "go"), "");

/** All that the programs of the task have printed, run after run. */
function streamOf(pool: Pool): string {
  return pool
    .runs()
    .sort()
    .map((run) => join(pool.state, "runs", run, "events.jsonl"))
    .map((path) => (fs.existsSync(path) ? fs.readFileSync(path, "utf8") : ""))
    .join("");
}

const occurrences = (text: string, part: string): number => text.split(part).length - 1;

it("gives a running claude a message, which it reads at its next step in the same run", async () => {
  const pool = newTalkPool(AT_WORK);
  await startWork(pool, "claude");
  const offered = await pool.run(["say", "a", "look at X", "--wait", "offered"]);
  expect(offered.stdout).toBe("message 1 to a: offered\n");
  expect(offered.stderr).toContain("the agent runs, and reads it at its next step");
  const reading = pool.spawn(["say", "a", "and at Y", "--wait", "read"]);
  await waitFor(() => occurrences(streamOf(pool), '"queued"') === 3, { what: "both messages" });
  letGo(pool);
  expect(await reading.ended).toMatchObject({ exitCode: 0 });
  expect(reading.stdout()).toBe("message 2 to a: read\n");
  expect(await pool.result("a")).toMatchObject({ output: "Done.", attempts: 1 });
  expect(pool.runs()).toHaveLength(1);
  expect(streamOf(pool).indexOf("look at X")).toBeLessThan(streamOf(pool).indexOf("and at Y"));
});

it("keeps a message for a running codex until its work is done, and then runs it once more", async () => {
  const pool = newTalkPool(AT_WORK);
  await startWork(pool, "codex");
  const said = await pool.run(["say", "a", "look at X"]);
  expect(said.stdout).toBe("message 1 to a: recorded\n");
  expect(said.stderr).toContain("kept for the agent's next run");
  const reading = pool.spawn(["say", "a", "and at Y", "--wait", "read"]);
  await waitFor(() => fs.existsSync(join(pool.state, "say", "a", "2.json")), { what: "both" });
  letGo(pool);
  expect(await reading.ended).toMatchObject({ exitCode: 0 });
  expect(await pool.result("a")).toMatchObject({ output: "ok", attempts: 1 });
  expect(pool.runs()).toHaveLength(2);
});

it.each(["claude", "codex"])(
  "gives %s what was said while verify ran in one more run of the same session",
  async (agent) => {
    const pool = newTalkPool({});
    const verify = ["sh", "-c", `echo x >> verifying; ${UNTIL_GO}`];
    pool.drop("a", { agent, prompt: "x", cwd: pool.dir, verify });
    await pool.start();
    await waitFor(() => fs.existsSync(join(pool.dir, "verifying")), { what: "verify" });
    const said = await pool.run(["say", "a", "look at X"]);
    expect(said.stdout).toBe("message 1 to a: recorded\n");
    expect(said.stderr).toMatch(/in one more run|the agent's next run/);
    const reading = pool.spawn(["say", "a", "and at Y", "--wait", "read"]);
    await waitFor(() => fs.existsSync(join(pool.state, "say", "a", "2.json")), { what: "both" });
    letGo(pool);
    expect(await reading.ended).toMatchObject({ exitCode: 0 });
    expect(await pool.result("a")).toMatchObject({ attempts: 1 });
    expect(pool.runs()).toHaveLength(2);
    expect(fs.readFileSync(join(pool.dir, "verifying"), "utf8")).toBe("x\nx\n");
    const ids = [...streamOf(pool).matchAll(/"(?:thread_id|session_id)":"([^"]+)"/g)];
    expect(new Set(ids.map(([, id]) => id)).size).toBe(1);
    for (const n of [1, 2])
      expect(fs.existsSync(join(pool.state, "say", "a", `${n}.read.json`))).toBe(true);
  },
);

it.each(["claude", "codex", "server"])(
  "gives %s what was said while the checks of a node ran in one more run of its last phase",
  async (agent) => {
    const said = `<result>{"status": "success", "summary": "done"}</result>`;
    const pool = newTalkPool({}, [[{ say: said }]], { phases: ["SPEC", "IMPLEMENT"] });
    const verify = ["sh", "-c", `cd ${pool.dir}; echo x >> verifying; ${UNTIL_GO}`];
    const node = { id: "a", title: "a", agent, verify: [verify] };
    fs.writeFileSync(join(pool.state, "roadmap.yaml"), `nodes:\n  - ${JSON.stringify(node)}\n`);
    await pool.start();
    await waitFor(() => fs.existsSync(join(pool.dir, "verifying")), { what: "the checks" });
    expect(await pool.run(["say", "a", "look at X"])).toMatchObject({ code: 0 });
    letGo(pool);
    expect(await pool.result("a")).toMatchObject({ attempts: 1, verdict: "success" });
    expect(fs.readFileSync(join(pool.dir, "verifying"), "utf8")).toBe("x\nx\n");
    expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
    const told = fs.readFileSync(join(pool.dir, "fake", "messages.jsonl"), "utf8").split("\n");
    expect(told.map((text) => text.includes("look at X"))).toEqual([false, false, true, false]);
    const ids = [...streamOf(pool).matchAll(/"(?:thread_id|session_id)":"([^"]+)"/g)];
    // A session for each phase: the last one goes on.
    if (agent !== "server") expect(new Set(ids.map(([, id]) => id)).size).toBe(2);
  },
);

it("gives a task that waits its messages with its first run, in one packet", async () => {
  const pool = newTalkPool({});
  pool.drop("a", { agent: "claude", prompt: "x" });
  expect((await pool.run(["say", "a", "first"])).code).toBe(0);
  expect((await pool.run(["say", "a", "second", "--json"])).stdout).toBe(
    '{"id":"a","message":2,"state":"recorded","next":"it is kept for the agent\'s next run of this task"}\n',
  );
  await pool.start();
  await pool.result("a");
  expect(streamOf(pool)).toContain("## Messages for you\\n\\nfirst\\n\\nsecond");
  for (const n of [1, 2])
    expect(fs.existsSync(join(pool.state, "say", "a", `${n}.read.json`))).toBe(true);
});

it("offers a message again when all was killed before it was read", async () => {
  const pool = newTalkPool(AT_WORK);
  await startWork(pool, "claude");
  await pool.run(["say", "a", "look at X", "--wait", "offered"]);
  await waitFor(() => occurrences(streamOf(pool), '"queued"') === 2, { what: "the message" });
  await pool.killAll();
  letGo(pool);
  expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(false);
  await pool.start();
  await pool.result("a");
  expect(occurrences(streamOf(pool), "look at X")).toBe(1);
  expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
});

it("refuses what has ended, what reads no messages, and what is not there", async () => {
  const pool = newTalkPool({});
  pool.drop("plain", { exec: ["true"], not_before: 4_000_000_000 });
  pool.drop("a", { agent: "claude", prompt: "x" });
  await pool.start();
  await pool.result("a");
  const why = async (id: string): Promise<string> => {
    const { code, stderr } = await pool.run(["say", id, "hi"]);
    return `${code} ${stderr}`;
  };
  expect(await why("a")).toMatch(/^4 .*has ended.*\n.*\n?.*mailchute continue a TEXT/);
  expect(await why("plain")).toMatch(/^4 .*is not a task of a coding agent/);
  expect(await why("none")).toMatch(/^3 .*no tray has a task "none"/);
});

describe("a codex app-server", () => {
  const startServer = async (): Promise<Pool> => {
    const pool = newTalkPool(AT_WORK);
    await startWork(pool, "server");
    // The worker notes the thread a moment after its program has printed it.
    const sessions = (): string[] =>
      pool.runs().filter((run) => fs.existsSync(join(pool.state, "runs", run, "session.json")));
    await waitFor(() => sessions().length > 0, { what: "the note of the thread" });
    return pool;
  };
  const steered = (pool: Pool): number => occurrences(streamOf(pool), '"result":{"turnId"');

  it("reads messages at its next step in the same run", async () => {
    const pool = await startServer();
    const offered = await pool.run(["say", "a", "look at X", "--wait", "offered"]);
    expect(offered.stderr).toContain("the agent runs, and reads it at its next step");
    const reading = pool.spawn(["say", "a", "and at Y", "--wait", "read"]);
    await waitFor(() => steered(pool) === 2, { what: "both messages" });
    letGo(pool);
    expect(await reading.ended).toMatchObject({ exitCode: 0 });
    expect(await pool.result("a")).toMatchObject({ output: "Done.", attempts: 1 });
    expect(pool.runs()).toHaveLength(1);
    expect(streamOf(pool).indexOf("look at X")).toBeLessThan(streamOf(pool).indexOf("and at Y"));
    const shown = (await pool.run(["logs", "a"])).stdout;
    for (const text of ["> GO", "> look at X", "> and at Y", "Done.", "end of the turn"])
      expect(shown).toContain(text);
  });

  it("that was killed gets what its thread has not had, once", async () => {
    const pool = await startServer();
    await pool.run(["say", "a", "look at X", "--wait", "offered"]);
    await waitFor(() => steered(pool) === 1, { what: "the message" });
    await pool.killAll();
    letGo(pool);
    await pool.start();
    await pool.result("a");
    expect(occurrences(streamOf(pool), "look at X")).toBe(1);
    expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
  });

  it("that was killed does not get again what its thread has had without our knowing", async () => {
    const pool = await startServer();
    await pool.run(["say", "a", "look at X", "--wait", "offered"]);
    await waitFor(() => steered(pool) === 1, { what: "the message" });
    await pool.killAll();
    letGo(pool);
    const folder = join(pool.dir, "fake");
    const file = fs.readdirSync(folder).find((name) => /^session-.*json$/.test(name)) as string;
    const thread = JSON.parse(fs.readFileSync(join(folder, file), "utf8"));
    const { uuid } = JSON.parse(
      fs.readFileSync(join(pool.state, "say", "a", "1.offer.json"), "utf8"),
    );
    thread.items.push(uuid);
    fs.writeFileSync(join(folder, file), JSON.stringify(thread));
    await pool.start();
    await pool.result("a");
    expect(streamOf(pool)).not.toContain("look at X");
    expect(fs.existsSync(join(pool.state, "say", "a", "1.read.json"))).toBe(true);
  });

  it("that is cancelled ends its turn first", async () => {
    const pool = await startServer();
    expect((await pool.run(["cancel", "a"])).code).toBe(0);
    expect(await pool.error("a")).toMatchObject({ kind: "cancelled" });
    expect(streamOf(pool)).toContain('"status":"interrupted"');
  });

  it("whose thread is gone begins a new one", async () => {
    const pool = await startServer();
    await pool.killAll();
    letGo(pool);
    fs.rmSync(join(pool.dir, "fake"), { recursive: true });
    await pool.start();
    expect(await pool.result("a")).toMatchObject({ output: "Done." });
    expect(streamOf(pool)).toContain("no rollout found");
  });

  it("at a usage limit leaves its task waiting until the time that it gave", async () => {
    const until = Math.floor(Date.now() / 1000) + 3600;
    const pool = newTalkPool({}, [[{ limit: until }]]);
    pool.drop("a", { agent: "server", prompt: "x" });
    await pool.start();
    const path = join(pool.state, "mailbox", "processing");
    await waitFor(() => fs.readdirSync(path).some((name) => name.includes("~hold-quota")), {
      what: "the hold",
    });
    expect((await pool.run(["show", "a"])).stdout).toContain(
      new Date(until * 1000).toISOString().slice(11, 16),
    );
  });
});
