/**
 * The tests of the seed in our terms, in the order of its tasks, by the built command line and the files that it leaves. What needs a
 * supervisor (task 6, and what task 5 does with the events of a run) is in `seed-run.test.ts`.
 */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { logRecordOf } from "../../../src/agents/stream/agent-log.ts";
import { newCodexExecReader } from "../../../src/parts/codex/read-exec-line.ts";
import { createAgent, readAgent } from "../../../src/parts/mail/agents/agents.ts";
import { createTask, listTasks } from "../../../src/parts/mail/agents/tasks.ts";
import { findMentions } from "../../../src/parts/mail/scope/mentions.ts";
import { type Scope, scopeOf } from "../../../src/parts/mail/scope/scope.ts";
import { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import { newCli } from "../../cli/run-cli.ts";
import { newRepository } from "../../support/git-repository.ts";

const NOW = 1_795_500_000_000;

/** A command line in a repository, with a data directory of its own. */
function newPlace(project: string, branch: string) {
  const cli = newCli();
  const repository = newRepository(join(cli.dir, project));
  if (branch !== "main") repository.git("checkout", "--quiet", "-b", branch);
  const dataDir = join(cli.dir, "data");
  const run = async (...args: string[]): Promise<string> => {
    const options = { env: { MAILCHUTE_DATA: dataDir, HOME: cli.dir }, cwd: project };
    const { code, stdout, stderr } = await cli(args, options);
    expect(stderr, args.join(" ")).not.toContain("Err");
    expect(code, stderr).toBe(0);
    return stdout;
  };
  const folderOf = (scope: Scope = { project, branch }): MailFolder =>
    new MailFolder({ dataDir, isDurable: false }, scope);
  return { cli, repository, dataDir, run, folderOf };
}

const readJson = (path: string): Record<string, unknown> =>
  JSON.parse(fs.readFileSync(path, "utf8"));
const lines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("Task 1: scope from the repository root, and one data directory", () => {
  it("takes the project from the repository's root and the branch as it is", async () => {
    const ctx = scopeOf("/Users/alice/code/my-app", "feature-login");
    expect(ctx.project).toBe("my-app");
    expect(ctx.branch).toBe("feature-login");
    const { run } = newPlace("my-app", "feature-login");
    expect(JSON.parse(await run("agents", "--json")).scope).toEqual(ctx);
  });

  it("takes main when no branch is named, and unknown outside of a repository", async () => {
    expect(scopeOf("/Users/alice/code/my-app", "")).toEqual({ project: "my-app", branch: "main" });
    const cli = newCli();
    const env = { MAILCHUTE_DATA: join(cli.dir, "data") };
    const { stdout } = await cli(["agents", "--json"], { env });
    expect(JSON.parse(stdout).scope).toEqual({ project: "unknown", branch: "main" });
  });

  it("keeps what is said in one directory, which it makes, whatever the repository", async () => {
    const { cli, run, dataDir } = newPlace("my-app", "feature-login");
    await run("say", "hello", "--to", "june");
    newRepository(join(cli.dir, "other"));
    const options = { env: { MAILCHUTE_DATA: dataDir }, cwd: "other" };
    await cli(["say", "hello", "--to", "june"], options);
    expect(fs.readdirSync(join(dataDir, "scopes")).sort()).toEqual(["my-app", "other"]);
    expect(readJson(join(dataDir, "scopes", "other", "main", "scope.json"))).toEqual({
      v: 1,
      project: "other",
      branch: "main",
    });
    await cli(["say", "hello", "--to", "june"], { env: { HOME: cli.dir }, cwd: "other" });
    expect(fs.existsSync(join(cli.dir, ".local/share/mailchute/scopes/other/main"))).toBe(true);
  });
});

describe("Task 2: records with project and branch, and tasks", () => {
  const scope = { project: "alpha", branch: "main" };

  it("agents, messages, logs and tasks have the fields of the seed's tables", async () => {
    const { run, folderOf } = newPlace("alpha", "main");
    const folder = folderOf();
    await createAgent(folder, { name: "a1", type: "codex", task: "t", status: "busy" }, NOW);
    expect(readJson(folder.path("agents", "a1.json"))).toEqual({
      v: 1,
      ...scope,
      name: "a1",
      type: "codex",
      task: "t",
      status: "busy",
      session_id: null,
      pid: null,
      compacted_at: null,
      last_seen_message_id: null,
      completed_at: null,
      archived_at: null,
      created_at: NOW / 1000,
      updated_at: NOW / 1000,
      // Ours.
      inc: 1,
      home: null,
      needs_briefing: false,
      from: null,
      spawned: null,
      task_id: null,
    });
    await run("say", "@a1 look", "--needs-human", "--id", "m1");
    const [, line = ""] = fs.readFileSync(folder.path("messages.1.jsonl"), "utf8").split("\n");
    expect(JSON.parse(line)).toMatchObject({
      v: 1,
      id: "m1",
      ...scope,
      from_agent: "human",
      to: [],
      type: "say",
      content: "@a1 look",
      mentions: ["alpha:main:a1"],
      requires_human: true,
      created_at: expect.any(Number),
    });
    const subject = { ...scope, agent_name: "a1", agent_type: "codex", task_id: "t", run: "r" };
    const fact = {
      fact: "tool_ended",
      id: "i1",
      output: "hi",
      exitCode: 3,
      isError: true,
    } as const;
    expect(logRecordOf(subject, fact, "{}", 7)).toEqual({
      v: 1,
      id: expect.any(String),
      ...scope,
      agent_name: "a1",
      agent_type: "codex",
      event_type: "tool_ended",
      tool_name: null,
      content: "hi",
      raw: "{}",
      command: null,
      exit_code: 3,
      status: "failed",
      tool_use_id: "i1",
      created_at: 7,
      task_id: "t",
      run: "r",
    });
    const task = { id: "x", parent_id: "w", name: "n", sort_index: 2, assigned_agent: "a1" };
    await createTask(folder, { ...task, result: "done" }, NOW);
    await createTask(folder, { id: "w", name: "first" }, NOW);
    const { v, tasks } = readJson(folder.path("tasks.json"));
    expect(v).toBe(1);
    expect(tasks).toContainEqual({
      ...scope,
      ...task,
      result: "done",
      created_at: NOW / 1000,
      updated_at: NOW / 1000,
    });
    // ListTasks: ordered by sort_index, and of this scope only.
    expect(listTasks(folder).map(({ id }) => id)).toEqual(["w", "x"]);
    expect(listTasks(folderOf({ project: "beta", branch: "main" }))).toEqual([]);
  });

  it("files of an earlier version, in which these fields are missing, are read", async () => {
    const { run, folderOf } = newPlace("alpha", "main");
    const folder = folderOf();
    folder.make();
    folder.makeDir("agents");
    fs.writeFileSync(folder.path("agents", "old.json"), '{"name":"old","status":"busy"}');
    fs.writeFileSync(
      folder.path("messages.1.jsonl"),
      '{"first":1}\n{"id":"m0","to_agent":"alpha:main:old","content":"hi","mentions":"[]"}\n',
    );
    fs.writeFileSync(folder.path("tasks.json"), '{"tasks":[{"id":"t0"}]}');
    expect(JSON.parse(await run("agents", "--json")).agents).toMatchObject([
      { ...scope, name: "old", type: "unknown", status: "busy", compacted_at: null, inc: 1 },
    ]);
    const [message] = JSON.parse(await run("mail", "old", "--json")).messages;
    expect(message).toMatchObject({
      v: 1,
      id: "m0",
      ...scope,
      from_agent: "unknown",
      to: ["alpha:main:old"],
      type: "say",
      requires_human: false,
    });
    expect(listTasks(folder)).toMatchObject([{ ...scope, id: "t0", name: "t0", sort_index: 0 }]);
  });
});

describe("Task 3: lists are filtered by project and branch", () => {
  it("an agent of the same name in another project is not listed", async () => {
    const { run, folderOf } = newPlace("alpha", "main");
    for (const project of ["alpha", "beta"])
      await createAgent(
        folderOf({ project, branch: "main" }),
        { name: "a1", type: "codex", task: project, status: "busy" },
        NOW,
      );
    const { agents } = JSON.parse(await run("agents", "--json", "--scope", "alpha:main"));
    expect(agents).toHaveLength(1);
    expect(agents[0]).toMatchObject({ project: "alpha", branch: "main", name: "a1" });
    const other = JSON.parse(await run("agents", "--json", "--scope", "beta:main")).agents;
    expect(other).toMatchObject([{ project: "beta", task: "beta" }]);
  });

  it("messages and mail are filtered alike, by the branch, too", async () => {
    const { run, repository } = newPlace("alpha", "main");
    await run("say", "on main", "--to", "a1");
    repository.git("checkout", "--quiet", "-b", "feature/login");
    await run("say", "on the branch", "--to", "a1");
    const textsOf = (messages: { content: string }[]) => messages.map(({ content }) => content);
    expect(textsOf(lines(await run("messages", "--json")))).toEqual(["on the branch"]);
    const mail = JSON.parse(await run("mail", "a1", "--json", "--scope", "alpha:main"));
    expect(textsOf(mail.messages)).toEqual(["on main"]);
  });
});

describe("Task 4: mentions as full addresses", () => {
  it("keeps project and branch as they are, and makes names of agents lower case", async () => {
    const want = ["app:feature/login:impl-1", "backend:main:june"];
    const text = "ping @Impl-1 and @backend:main:June";
    expect(findMentions(text, { project: "app", branch: "feature/login" })).toEqual(want);
    const { run } = newPlace("app", "feature/login");
    await run("say", text);
    expect(lines(await run("messages", "--json"))[0].mentions).toEqual(want);
  });

  it("resolves each form, each address once", async () => {
    const { run } = newPlace("app", "feature/login");
    await run("say", "@a @feature/x:B @c:d:E @A");
    expect(lines(await run("messages", "--json"))[0].mentions).toEqual([
      "app:feature/login:a",
      "app:feature/x:b",
      "c:d:e",
    ]);
  });
});

describe("Task 5: events of codex, with compaction", () => {
  const read = newCodexExecReader();

  it("reads a compaction", () => {
    expect(read('{"type":"context_compacted"}')).toEqual([{ fact: "compacted" }]);
  });

  it("reads the thread, the end of a turn and of an item; what is no JSON is no event", () => {
    const thread = read('{"type":"thread.started","thread_id":"t1"}');
    expect(thread).toEqual([{ fact: "session", id: "t1" }]);
    // Without an id there is no session to keep.
    for (const nameless of [
      '{"type":"thread.started"}',
      '{"type":"thread.started","thread_id":""}',
    ])
      expect(read(nameless).some(({ fact }) => fact === "session")).toBe(false);
    const failed = read('{"type":"turn.failed","error":{"message":"no"}}');
    expect(failed).toMatchObject([{ fact: "turn_ended", end: { fault: "other", text: "no" } }]);
    const item = {
      id: "i",
      type: "command_execution",
      command: "ls",
      aggregated_output: "out",
      exit_code: 0,
      status: "completed",
    };
    expect(read(JSON.stringify({ type: "item.completed", item }))).toContainEqual({
      fact: "tool_ended",
      id: "i",
      output: "out",
      exitCode: 0,
      isError: false,
    });
    expect(read("no json").every(({ fact }) => fact === "unknown")).toBe(true);
  });

  it("keeps a record of events that it does not know, with the line as it was", () => {
    const raw = '{"type":"something.new","x":1}';
    const [fact] = read(raw);
    const subject = { agent_name: "a", agent_type: "codex", task_id: "t", run: "r" };
    expect(fact && logRecordOf(subject, fact, raw, 1)).toMatchObject({
      event_type: "something.new",
      raw,
      content: "",
      agent_type: "codex",
    });
  });
});

it("an archived agent leaves the list, and its record stays", async () => {
  const { run, folderOf } = newPlace("alpha", "main");
  const folder = folderOf();
  await createAgent(folder, { name: "a1", type: "codex" }, NOW);
  await run("archive", "a1");
  expect(JSON.parse(await run("agents", "--json")).agents).toEqual([]);
  expect(readAgent(folder, "a1")?.archived_at).toBeGreaterThan(0);
});
