/** The tests of the seed in our terms, as far as they need a supervisor and runs: see `seed.test.ts` for the others. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { MessageReader } from "../../../src/parts/mail/store/read-messages.ts";
import { type Bench, type FakeAgent, newBench } from "../../agents/runs/bench.ts";
import { newRepository } from "../../support/git-repository.ts";
import { takeSome } from "../../support/take-some.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitFor } from "../../support/wait-for.ts";

takeSome();

const SCOPE = { project: "app", branch: "main" };
const LONG = { timeoutMs: 60_000 };

/** The orchestrator june and the agent impl-1 in the repository app. @param turns those of impl-1 */
function newApp(turns: FakeAgent["turns"]) {
  const dir = tempDir();
  const dataDir = join(dir, "data");
  newRepository(join(dir, "app"));
  const bench = newBench(
    [
      { name: "impl-1", kind: "codex", turns },
      { name: "june", kind: "claude", turns: [[{ say: "I see." }]] },
    ],
    { place: { parent: join(dir, "app"), env: { MAILCHUTE_DATA: dataDir } } },
  );
  fs.appendFileSync(join(bench.pool.state, "config.yaml"), "mail_enabled: true\n");
  const folder = new MailFolder({ dataDir, isDurable: false }, SCOPE);
  const said = () => [...new MessageReader(folder).next()];
  const agent = (name: string) => readAgent(folder, name);
  return { ...bench, folder, said, agent };
}

/** Moves a message of any program into the tree. */
function post({ pool }: Bench, id: string, body: object): void {
  const inbox = join(pool.state, "post", "inbox");
  fs.writeFileSync(join(pool.dir, id), JSON.stringify(body));
  fs.renameSync(join(pool.dir, id), join(inbox, `${id}.json`));
}

describe("Task 5: what follows from the events of codex", () => {
  it("the agent has its thread, is known to be compacted, and each event has a record in its log", async () => {
    const turn = [
      { compact: true },
      { run: "echo hi; exit 3" },
      { notice: "odd" },
      { say: "Done." },
    ];
    const app = newApp([turn]);
    app.pool.drop("t1", { agent: "impl-1", prompt: "work" });
    await app.pool.start();
    await app.pool.result("t1");
    const [stream = ""] = app.pool
      .runs()
      .filter((run) => run.includes("/t1@"))
      .map((run) => fs.readFileSync(join(app.pool.state, "runs", run, "events.jsonl"), "utf8"));
    const { thread_id: thread } = JSON.parse(stream.split("\n")[0] ?? "{}");
    expect(thread).toBeTruthy();
    expect(app.agent("impl-1")).toMatchObject({
      session_id: thread,
      compacted_at: expect.any(Number),
      needs_briefing: true,
    });
    const own = { v: 1, ...SCOPE, agent_name: "impl-1", agent_type: "codex", task_id: "t1" };
    const log = app.log("impl-1");
    for (const record of log) expect(record).toMatchObject(own);
    expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
    const compacted = { event_type: "context_compacted", raw: '{"type":"context_compacted"}' };
    expect(log).toContainEqual(expect.objectContaining(compacted));
    const command = { event_type: "tool_ended", content: "hi\n", exit_code: 3, status: "failed" };
    expect(log).toContainEqual(expect.objectContaining(command));
    const text = { event_type: "agent_message", content: "Done.", command: null, exit_code: null };
    expect(log).toContainEqual(expect.objectContaining(text));
  });

  it("a turn that fails makes the agent failed", async () => {
    const app = newApp([[{ fail: 400, message: "no such model" }]]);
    app.pool.drop("t1", { agent: "impl-1", prompt: "work", max_attempts: 1 });
    await app.pool.start();
    await app.pool.error("t1", 60_000);
    await waitFor(() => app.agent("impl-1")?.status === "failed", { what: "failed", ...LONG });
  });
});

describe("Task 6: wake-ups, exits and failures", () => {
  it("a mention wakes its agent, which is told the message; its exit wakes the orchestrator", async () => {
    const app = newApp([[{ say: "All is well." }]]);
    await app.pool.start();
    await waitFor(() => app.agent("june") !== undefined, { what: "the agents", ...LONG });
    expect(app.said()).toEqual([]);
    app.pool.drop("t0", { exec: ["true"], title: "the schema" });
    await app.pool.result("t0");
    post(app, "m1", { from_agent: "impl-1", type: "say", content: "@impl-1 status?" });
    await waitFor(() => app.messages("june").length > 0, { what: "june to be woken", ...LONG });
    const [m1, exit] = app.said();
    expect(m1).toMatchObject({ id: "m1", from_agent: "impl-1", mentions: ["app:main:impl-1"] });
    const why = await app.pool.run(["agents", "why", "impl-1"]);
    expect(why.stdout).toContain("woken by app:main:impl-1 (m1)");
    const [told = ""] = app.messages("impl-1");
    expect(told).toContain("You are the agent impl-1 in the scope app:main.");
    expect(told).toContain("> @impl-1 status?");
    expect(app.messages("impl-1")).toHaveLength(1);
    // V0 does not rely on `june complete`: the end of the process is told.
    expect(exit).toMatchObject({ from_agent: "impl-1", type: "exit", to: ["app:main:june"] });
    const [bundle = ""] = app.messages("june");
    expect(bundle).toContain("You were woken by mail of app:main:impl-1");
    expect(bundle).toContain("The tasks here:\n- t0: done: the schema\n");
    expect(bundle).toContain("> All is well.");
    expect((await app.pool.run(["messages", "--unread", "--mentions", "impl-1"])).stdout).toBe("");
  });

  it("each agent that a message mentions is woken, and none by a message without mentions", async () => {
    const app = newApp([[{ say: "I know." }]]);
    await app.pool.start();
    await waitFor(() => app.agent("june") !== undefined, { what: "the agents", ...LONG });
    post(app, "m1", { from_agent: "ci", content: "for the record: impl-1 is slow" });
    await waitFor(() => app.said().length === 1, { what: "the first message", ...LONG });
    const text = "@impl-1 and @june: the build is red";
    post(app, "m2", { from_agent: "ci", content: text });
    const told = (name: string): string => app.messages(name).join("\n");
    await waitFor(() => ["impl-1", "june"].every((name) => told(name).includes(`> ${text}`)), {
      what: "both to be told",
      ...LONG,
    });
    for (const name of ["impl-1", "june"]) {
      expect(told(name)).not.toContain("for the record");
      expect(told(name).split(`> ${text}`)).toHaveLength(2);
      const { stdout } = await app.pool.run(["agents", "why", name]);
      expect(stdout).toContain("woken by app:main:ci (m2)");
      expect(stdout).not.toContain("m1");
    }
  });

  it("a process that dies makes the agent failed, with a message of its own to the orchestrator", async () => {
    const app = newApp([[{ run: "sleep 600" }]]);
    app.pool.drop("t1", { agent: "impl-1", prompt: "work", max_attempts: 1 });
    await app.pool.start();
    await waitFor(() => app.agent("impl-1")?.status === "busy", { what: "busy", ...LONG });
    const { pid } = app.agent("impl-1") ?? {};
    process.kill(pid ?? 0, "SIGKILL");
    await waitFor(() => app.agent("impl-1")?.status === "failed", { what: "failed", ...LONG });
    const exits = app.said().filter(({ type }) => type === "exit");
    expect(exits).toMatchObject([
      { from_agent: "impl-1", to: ["app:main:june"], mentions: [], via: "system" },
    ]);
    expect(exits[0]?.content).toMatch(/^t1 failed/);
    await waitFor(() => app.messages("june").join().includes("> t1 failed"), {
      what: "june to be told",
      ...LONG,
    });
    expect(app.agent("impl-1")?.pid).toBeNull();
  });
});
