/** The stand-ins for claude and codex do what the real programs were seen to do: other tests rest on them. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Program, startProgram } from "../support/programs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

// biome-ignore lint/suspicious/noExplicitAny: what a test looks for is what it checks.
type Line = any;

const linesOf = (program: Program): Line[] =>
  program
    .stdout()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

const ofType = (program: Program, type: string): Line[] =>
  linesOf(program).filter((line) => line.type === type || line.subtype === type);

interface Started extends Program {
  send(text: string, uuid?: string): void;
}

function start(name: string, script: object, args: string[] = [], state = tempDir()): Started {
  const program = startProgram(name, args, {
    env: { FAKE_AGENT: JSON.stringify(script), FAKE_AGENT_STATE: state, CODEX_HOME: state },
  });
  const send = (content: string, uuid?: string): void => {
    const frame = { type: "user", uuid, message: { role: "user", content } };
    program.child.stdin?.write(`${JSON.stringify(frame)}\n`);
  };
  return { ...program, send };
}

/** The process that a tool's command says is its own. */
function toolPid(file: string): number {
  const pid = Number(fs.readFileSync(file, "utf8"));
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  return pid;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // What has ended and was not collected yet is not alive.
    return !fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

const longTool = (file: string): object => ({
  run: `echo $$ > ${file}.new; mv ${file}.new ${file}; sleep 60`,
});

describe("fake-claude", () => {
  const claude = (script: object, args: string[] = [], state?: string): Started =>
    start("fake-claude.mjs", script, args, state);

  it("answers a message, runs its tool and ends when its input does", async () => {
    const run = claude({ turns: [[{ run: "echo $((6 * 7))" }, { say: "Seen." }]] });
    run.send("go", "u-1");
    run.child.stdin?.end();
    expect(await run.ended).toEqual({ exitCode: 0, signal: null });
    expect(ofType(run, "command_lifecycle").map(({ state }) => state)).toEqual([
      "queued",
      "started",
      "completed",
    ]);
    expect(
      ofType(run, "user").map(({ isReplay, message }) => isReplay ?? message.content[0].content),
    ).toEqual([true, "42"]);
    expect(ofType(run, "result")).toMatchObject([
      { subtype: "success", is_error: false, result: "Seen.", user_message_uuids: ["u-1"] },
    ]);
  });

  it("reads a message at the end of a tool call, and echoes a repeat of it without reading", async () => {
    const dir = tempDir();
    const go = join(dir, "go");
    const run = claude({
      turns: [[{ run: `while ! [ -e ${go} ]; do sleep 0.1; done` }, { say: "a" }]],
    });
    run.send("first", "u-1");
    await waitFor(() => ofType(run, "assistant").length > 0, { what: "the tool call" });
    run.send("mail", "u-2");
    run.send("mail", "u-2");
    await waitFor(() => ofType(run, "user").length === 2, { what: "the echo of the repeat" });
    fs.writeFileSync(go, "");
    run.child.stdin?.end();
    await run.ended;
    expect(ofType(run, "result")).toMatchObject([{ user_message_uuids: ["u-1", "u-2"] }]);
    const mail = ofType(run, "command_lifecycle").filter(
      ({ command_uuid }) => command_uuid === "u-2",
    );
    expect(mail.map(({ state }) => state)).toEqual(["queued", "started", "completed"]);
  });

  it("sums costs over a session, and says what is new", async () => {
    const state = tempDir();
    const cost = { turns: [[{ usage: { input: 10, cost: 0.5 } }]] };
    const first = claude(cost, ["--session-id", "s-1"], state);
    first.send("go");
    first.child.stdin?.end();
    await first.ended;
    const second = claude(cost, ["--resume", "s-1"], state);
    second.send("on");
    second.child.stdin?.end();
    await second.ended;
    expect(ofType(second, "result")).toMatchObject([
      {
        session_id: "s-1",
        total_cost_usd: 1,
        usage: { input_tokens: 10 },
        modelUsage: { "claude-sonnet-4-5": { inputTokens: 20, costUSD: 1 } },
        model_usage_since_last_result: { "claude-sonnet-4-5": { inputTokens: 10, costUSD: 0.5 } },
      },
    ]);
  });

  it("does not find a session that is gone", async () => {
    const run = claude({}, ["--resume", "none"]);
    expect(await run.ended).toEqual({ exitCode: 1, signal: null });
    expect(run.stderr()).toContain("No conversation found with session ID: none");
    expect(ofType(run, "result")).toMatchObject([
      { subtype: "error_during_execution", is_error: true, num_turns: 0 },
    ]);
  });

  it("goes on after a result while a background task runs, and answers its end", async () => {
    const run = claude({ turns: [[{ run: "sleep 0.2", background: true }, { say: "Started." }]] });
    run.send("go");
    run.child.stdin?.end();
    expect(await run.ended).toEqual({ exitCode: 0, signal: null });
    expect(ofType(run, "background_tasks_changed").map(({ tasks }) => tasks.length)).toEqual([
      1, 0,
    ]);
    expect(ofType(run, "result").map(({ origin }) => origin?.kind)).toEqual([
      undefined,
      "task-notification",
    ]);
  });

  it.each([
    ["SIGINT", 0, ["aborted_tools"]],
    ["SIGTERM", 143, []],
  ] as const)("ends its tools and itself on %s", async (signal, exitCode, reasons) => {
    const file = join(tempDir(), "pid");
    const run = claude({ turns: [[longTool(file)]] });
    run.send("go");
    await waitFor(() => fs.existsSync(file), { what: "the tool" });
    const pid = toolPid(file);
    run.child.kill(signal);
    expect(await run.ended).toEqual({ exitCode, signal: null });
    expect(ofType(run, "result").map(({ terminal_reason }) => terminal_reason)).toEqual(reasons);
    await waitFor(() => !isAlive(pid), { what: "the tool's end" });
  });

  it("fails in the ways of the real one, once or until a time", async () => {
    const until = Date.now() / 1000 + 3600;
    const run = claude({
      turns: [[{ fail: 401 }], [{ limit: 99, until }], [{ limit: 99, until: 1 }, { say: "b" }]],
    });
    for (const text of ["one", "two", "three"]) {
      run.send(text);
      const count = ofType(run, "result").length;
      await waitFor(() => ofType(run, "result").length > count, { what: "a result" });
    }
    run.child.stdin?.end();
    expect(await run.ended).toEqual({ exitCode: 0, signal: null });
    expect(ofType(run, "result")).toMatchObject([
      { subtype: "success", is_error: true, api_error_status: 401, terminal_reason: "api_error" },
      { is_error: true, api_error: "usage_limit_reached" },
      { is_error: false },
    ]);
    expect(ofType(run, "rate_limit_event")).toMatchObject([
      { rate_limit_info: { status: "rejected", resetsAt: 99 } },
    ]);
  });

  it("prints what it is told to, and can end without a word", async () => {
    const run = claude({ turns: [[{ line: "x", repeat: 3_000_000 }, { exit: 7 }]] });
    run.send("go");
    expect(await run.ended).toEqual({ exitCode: 7, signal: null });
    expect(run.stdout()).toContain("x".repeat(3_000_000));
  });
});

describe("fake-codex", () => {
  const codex = (script: object, args: string[], state?: string): Started => {
    const run = start("fake-codex.mjs", script, args, state);
    run.child.stdin?.end();
    return run;
  };

  it("runs its tool, and sums tokens over a thread", async () => {
    const state = tempDir();
    const script = { turns: [[{ run: "echo hi" }, { usage: { input: 10 } }, { say: "Done." }]] };
    const first = codex(script, ["exec", "--json", "-c", "model=m", "go"], state);
    expect(await first.ended).toEqual({ exitCode: 0, signal: null });
    const [{ thread_id: id }] = ofType(first, "thread.started");
    expect(ofType(first, "item.completed").map(({ item }) => item.type)).toEqual([
      "command_execution",
      "agent_message",
    ]);
    const second = codex(script, ["exec", "--json", "resume", id, "on"], state);
    await second.ended;
    expect(ofType(second, "thread.started")).toMatchObject([{ thread_id: id }]);
    expect(ofType(second, "turn.completed")).toMatchObject([{ usage: { input_tokens: 20 } }]);
  });

  it("does not find a thread that is gone, and prints nothing then", async () => {
    const run = codex({}, ["exec", "resume", "01a20f9d-0000", "go"]);
    expect(await run.ended).toEqual({ exitCode: 1, signal: null });
    expect(run.stdout()).toBe("");
    expect(run.stderr()).toContain("no rollout found for thread id 01a20f9d-0000");
  });

  it("gives each task its own turns, and keeps the time of a limit in its rollout file", async () => {
    const state = tempDir();
    const script = {
      tasks: { "t-1": [[{ limit: 99 }], [{ say: "ok" }]], "t-2": [[{ say: "b" }]] },
    };
    const exits: (number | null)[] = [];
    for (const prompt of ["do t-1", "do t-2", "do t-1"])
      exits.push((await codex(script, ["exec", "--json", prompt], state).ended).exitCode);
    expect(exits).toEqual([1, 0, 0]);
    const texts = fs
      .readdirSync(join(state, "sessions"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => fs.readFileSync(join(state, "sessions", name), "utf8"));
    expect(texts.join("")).toContain('"resets_at":99');
  });

  it.each([
    ["SIGINT", { exitCode: 1, signal: null }, false],
    ["SIGTERM", { exitCode: null, signal: "SIGTERM" }, true],
  ] as const)("says nothing on %s", async (signal, end, isToolAlive) => {
    const file = join(tempDir(), "pid");
    const run = codex({ turns: [[longTool(file)]] }, ["exec", "go"]);
    await waitFor(() => fs.existsSync(file), { what: "the tool" });
    const pid = toolPid(file);
    run.child.kill(signal);
    // A tool that is left behind keeps no pipe of its parent's: the parent's end is seen at once.
    expect(await run.ended).toEqual(end);
    expect(linesOf(run).at(-1)).toMatchObject({ type: "item.started" });
    if (isToolAlive) expect(isAlive(pid)).toBe(true);
    else await waitFor(() => !isAlive(pid), { what: "the tool's end" });
  });
});
