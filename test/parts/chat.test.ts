/** `chat` from a pipe: slash commands, their confirmations and effects, and what an agent may propose. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readProposal } from "../../src/parts/chat/propose.ts";
import { parseSlash, SLASH_COMMANDS } from "../../src/parts/chat/slash-commands.ts";
import { newPool, type Pool, QUICK_CONFIG, readJson } from "../support/pool.ts";
import { hasTmux, MAILCHUTE, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/mailchute.js", import.meta.url));

function waitingCommands(pool: Pool): { command: string; args: object }[] {
  const inbox = join(pool.state, "control", "inbox");
  return fs.readdirSync(inbox).flatMap((name) => readJson<never>(join(inbox, name)) ?? []);
}

function say(pool: Pool, lines: readonly string[], args: readonly string[] = ["--no-llm"]) {
  return pool.run(["chat", ...args], `${lines.join("\n")}\n`);
}

/** A chat agent that answers with these lines. */
function newPoolWithAgent(answer: string): Pool {
  const config = `${QUICK_CONFIG}
agents:
  - {name: helper, kind: exec, program: sh, args: [answer.sh]}
`;
  const pool = newPool({ config });
  fs.writeFileSync(join(pool.dir, "packet"), "");
  fs.writeFileSync(
    join(pool.dir, "answer.sh"),
    `cat "$MAILCHUTE_PACKET" > packet\ncat <<'END'\n${answer}\nEND\n`,
  );
  return pool;
}

describe("without a supervisor", () => {
  test("/pause is confirmed and waits in the control inbox", async () => {
    const pool = newPool();
    const { code, stdout, stderr } = await say(pool, ["/pause", "/exit", "/resume"]);
    expect(code).toBe(0);
    expect(stderr).toBe("");
    expect(stdout).toMatch(
      /^pause sent \(c-[^)]+\); no supervisor runs: it waits for the next one\n$/,
    );
    expect(waitingCommands(pool)).toMatchObject([{ command: "pause", args: {} }]);
  });

  test("/workers N enqueues set-workers with its number", async () => {
    const pool = newPool();
    await say(pool, ["/workers 3"]);
    expect(waitingCommands(pool)).toMatchObject([{ command: "set-workers", args: { workers: 3 } }]);
  });

  test("the end of input is a good end", async () => {
    const pool = newPool();
    expect(await pool.run(["chat"], "")).toEqual({ code: 0, stdout: "", stderr: "" });
    expect((await pool.run(["chat", "--plain"], "/help")).stdout).toContain("/workers N");
  });

  test("what is not understood is explained, and the conversation goes on", async () => {
    const EXPLAINED = [
      ["/puase", "did you mean /pause?"],
      ["/xyzzy", "/help lists all commands"],
      ["/workers x", '/workers needs a whole number from 0 to 1024, found "x"; usage: /workers N'],
      ["/workers", "found none"],
      ["/workers 99999", "from 0 to 1024"],
      ["/cancel", "/cancel needs the id of a task"],
      ["/cancel ../../etc", "is no id"],
      ["/pause now", "/pause does not know what to do with"],
      ["/ls runing", "did you mean /ls running?"],
      ["/logs nope", "no tray has a task"],
      ["/retry nope", 'no failed task "nope"'],
      ["pause", "did you mean /pause?"],
      ["please go on", "with --no-llm only commands are understood"],
    ] as const;
    const pool = newPool();
    const { code, stdout } = await say(pool, [...EXPLAINED.map(([line]) => line), "/resume"]);
    expect(code).toBe(0);
    let from = 0;
    for (const [line, explanation] of EXPLAINED) {
      const at = stdout.indexOf(explanation, from);
      expect(at, `${line}: ${explanation}`).toBeGreaterThanOrEqual(0);
      from = at + explanation.length;
    }
    expect(stdout.indexOf("resume sent (", from)).toBeGreaterThan(0);
    expect(waitingCommands(pool)).toMatchObject([{ command: "resume" }]);
  });

  test("/retry puts a failed task back", async () => {
    const pool = newPool();
    const record = { task_id: "a", status: "failed", error: "x", task: { exec: ["true"] } };
    fs.writeFileSync(join(pool.failed, "a_error.json"), JSON.stringify(record));
    expect((await say(pool, ["/retry a"])).stdout).toBe("a waits in the inbox again\n");
    expect(readJson(join(pool.inbox, "a.json"))).toEqual({ exec: ["true"] });
  });

  test("with --json each answer is one JSON line", async () => {
    const { stdout } = await say(newPool(), ["/pause", "/bad", "/help"], ["--no-llm", "--json"]);
    const [sent, error, help] = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(sent).toMatchObject({ command: "pause", result: null });
    expect(error).toMatchObject({ error: { code: "ErrUsage" } });
    expect(help.commands).toHaveLength(Object.keys(SLASH_COMMANDS).length);
  });
});

test("with a running supervisor the effect is there when it is confirmed", async () => {
  const pool = newPool();
  await pool.start();
  const control = () => readJson<Record<string, unknown>>(join(pool.state, "control.json"));
  const paused = await say(pool, ["/pause", "/workers 2"]);
  expect(paused.stdout).toMatch(
    /^pause sent \(c-[^)]+\); paused: true\nset-workers sent \(c-[^)]+\); workers: 2\n$/,
  );
  expect(control()).toMatchObject({ paused: true, max_workers: 2 });
  pool.drop("held", { exec: ["sh", "-c", "echo here; sleep 60"] });
  const asked = await say(pool, ["/status", "/cancel held", "/cancel nope", "/replan"]);
  expect(asked.stdout).toContain("! claiming is paused since ");
  expect(asked.stdout).toMatch(/cancel sent \(c-[^)]+\); not done: held is not in flight/);
  expect(asked.stdout).toMatch(/cancel sent \(c-[^)]+\); not done: no task "nope"/);
  expect(asked.stdout).toMatch(/replan sent \(c-[^)]+\); not done: /);
  expect((await say(pool, ["/resume"])).stdout).toMatch(/; paused: false\n$/);
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.includes("~w-")), {
    what: "the start of the task",
  });
  const running = await waitFor(
    async () => {
      const { stdout } = await say(pool, ["/ls running", "/logs held"]);
      return stdout.includes("here\n") && stdout;
    },
    { what: "its log" },
  );
  expect(running).toMatch(/^held +running/m);
  const ended = await say(pool, ["/cancel held final"]);
  expect(ended.stdout).toMatch(/cancel sent \(c-[^)]+\); cancelled: held, final: true\n$/);
  expect(await pool.error("held")).toMatchObject({ kind: "cancelled" });
});

describe("free text", () => {
  test("is explained when no agent is configured", async () => {
    const { code, stdout } = await say(newPool(), ["do something"], []);
    expect(code).toBe(0);
    expect(stdout).toContain("free text needs a configured agent of kind exec");
  });

  test("goes to the agent, whose proposals are shown and not run from a pipe", async () => {
    const pool = newPoolWithAgent("I would hold it.\n/pause\n/rm -rf\n/workers 99999");
    const { code, stdout } = await say(pool, ["stop everything, please"], []);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        "helper: I would hold it.",
        'left out: /rm -rf (there is no command "/rm")',
        'left out: /workers 99999 (/workers needs a whole number from 0 to 1024, found "99999")',
        "proposed: /pause",
        "not run: from a pipe proposals are run only with --yes",
        "",
      ].join("\n"),
    );
    const packet = fs.readFileSync(join(pool.dir, "packet"), "utf8");
    expect(packet).toContain("stop everything, please");
    expect(packet).toContain("/workers N");
    expect(fs.existsSync(join(pool.state, "control"))).toBe(false);
  });

  test("with --yes what was proposed is run", async () => {
    const pool = newPoolWithAgent("/pause\nnothing else");
    const { stdout } = await say(pool, ["hold on"], ["--yes"]);
    expect(stdout).toContain("pause sent (");
    expect(waitingCommands(pool)).toMatchObject([{ command: "pause" }]);
  });

  test("never reaches an agent with --no-llm", async () => {
    const pool = newPoolWithAgent("/pause");
    await say(pool, ["hold on"], ["--no-llm", "--yes"]);
    expect(fs.readFileSync(join(pool.dir, "packet"), "utf8")).toBe("");
  });

  test("a program that it asks may read values of kv, and is told that it may put none", async () => {
    const pool = newPoolWithAgent(
      `END
"${process.execPath}" "${LAUNCHER}" kv get a k > got
"${process.execPath}" "${LAUNCHER}" kv put __run__ k v 2> refused
echo $? >> refused
cat <<'END'
done`,
    );
    await pool.run(["kv", "put", "a", "k", "value"]);
    const { code, stdout } = await say(pool, ["what is it?"], []);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("done") });
    expect(fs.readFileSync(join(pool.dir, "got"), "utf8")).toBe("value\n");
    const refused = fs.readFileSync(join(pool.dir, "refused"), "utf8");
    expect(refused).toContain("ErrForeignKey");
    expect(refused).toContain("a program that the chat asks runs no task");
    expect(refused).toMatch(/\n4\n$/);
  });

  test("an agent that fails is reported", async () => {
    const pool = newPoolWithAgent("END\nexit 3\n: <<'END'");
    const { code, stdout } = await say(pool, ["hello"], []);
    expect(code).toBe(0);
    expect(stdout).toContain("the agent helper gave no answer: the program ended with exit code 3");
  });
});

test("every usage line of the prompt is understood by its own parser", () => {
  for (const { usage } of Object.values(SLASH_COMMANDS)) {
    const line = usage
      .replace("ID", "a")
      .replace(" [final]", "")
      .replace(" [STATE]", "")
      .replace("N", "3");
    expect(parseSlash(line).kind).toBeTypeOf("string");
  }
});

test("a proposal of other than text holds no commands", () => {
  expect(readProposal({ commands: ["/pause"] })).toEqual({
    commands: [],
    refused: [],
    remarks: [],
  });
});

describe.skipIf(!hasTmux)("on a real terminal", () => {
  const lines = (screen: string): string[] =>
    screen
      .trimEnd()
      .split("\n")
      .map((line) => line.trimEnd());

  test("Tab Tab lists what fits, also when the keys come all at once", async () => {
    const pool = newPool();
    for (const id of ["build-a", "build-b"])
      fs.writeFileSync(join(pool.failed, `${id}_error.json`), "{}");
    const terminal = openTerminal(pool.dir, 80, 24);
    const shows = (line: string, what: string): Promise<unknown> =>
      waitFor(() => lines(terminal.screen()).includes(line), { what });
    terminal.press(`${MAILCHUTE} chat --no-llm`, "Enter");
    await shows("mailchute>", "the prompt");
    terminal.press("/re", "Tab", "Tab");
    await shows("/resume  /replan  /retry", "the commands");
    terminal.press("t", "Tab", "b", "Tab", "Tab");
    await shows("build-a  build-b", "the ids");
    await shows("mailchute> /retry build-", "what they share");
    terminal.press("C-u", "/ls w", "Tab");
    await shows("mailchute> /ls waiting", "a state");
  });

  test("Up brings back the lines of this session, and no answer to a question", async () => {
    const pool = newPoolWithAgent("/pause");
    const terminal = openTerminal(pool.dir, 80, 24);
    const ends = (line: string, what: string): Promise<unknown> =>
      waitFor(() => lines(terminal.screen()).at(-1) === line, { what });
    terminal.press(`${MAILCHUTE} chat`, "Enter");
    await ends("mailchute>", "the prompt");
    terminal.press("stop it, please", "Enter");
    await ends("run it? [y/N]", "the question");
    terminal.press("n", "Enter");
    await ends("mailchute>", "the prompt again");
    terminal.press("Up");
    await ends("mailchute> stop it, please", "the line before");
    const written = fs.readdirSync(pool.state, { recursive: true, encoding: "utf8" });
    for (const name of written.map((path) => join(pool.state, path)))
      if (fs.statSync(name).isFile())
        expect(fs.readFileSync(name, "utf8")).not.toContain("stop it");
  });
});
