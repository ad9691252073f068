/** The protocol of the MCP server, and that its tools say what their verbs understand. In this process. */
import { describe, expect, it } from "vitest";
import { SHARED_OPTIONS } from "../../../src/cli/shell/options.ts";
import { parseArguments } from "../../../src/cli/shell/parse.ts";
import { loadCommand, REGISTRY } from "../../../src/cli/shell/registry.ts";
import type { Kept, Said } from "../../../src/parts/mcp/run-verb.ts";
import { McpServer } from "../../../src/parts/mcp/server.ts";
import { type Args, TOOLS } from "../../../src/parts/mcp/tools.ts";

/** A server whose calls end when the test says so. */
function newServer() {
  const lines: Record<string, unknown>[] = [];
  const calls: { argv: readonly string[]; kept: Kept; end: (said?: Partial<Said>) => void }[] = [];
  let nowMs = 0;
  const server = new McpServer({
    tools: TOOLS,
    version: "1.2.3",
    instructions: "hello",
    name: "pat",
    run: async (argv, signal, kept) =>
      await new Promise((resolve) => {
        const said = { code: 0, stdout: `done ${argv[0]}`, stderr: "", isCut: false };
        signal.addEventListener("abort", () => resolve({ ...said, code: null }));
        calls.push({ argv, kept, end: (more) => resolve({ ...said, ...more }) });
      }),
    write: async (line) => {
      expect(line).toMatch(/^[^\n]+\n$/);
      lines.push(JSON.parse(line));
    },
    nowMs: () => nowMs,
  });
  const send = (message: object): Promise<void> =>
    server.take(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const call = (id: number, name: string, args?: object): Promise<void> =>
    send({ id, method: "tools/call", params: { name, arguments: args } });
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { server, send, call, calls, lines, pass };
}

describe("the protocol", () => {
  it.each([
    ["2025-03-26", "2025-03-26"],
    ["1999-01-01", "2025-11-25"],
    [undefined, "2025-11-25"],
  ])("a client that speaks %s is answered in %s", async (protocolVersion, spoken) => {
    const { send, lines } = newServer();
    await send({ id: 1, method: "initialize", params: { protocolVersion } });
    await send({ method: "notifications/initialized" });
    expect(lines).toEqual([
      {
        jsonrpc: "2.0",
        id: 1,
        result: {
          protocolVersion: spoken,
          capabilities: { tools: {}, resources: {} },
          serverInfo: { name: "mailchute", version: "1.2.3" },
          instructions: "hello",
        },
      },
    ]);
  });

  it("what is no request is answered with its error, and the server goes on", async () => {
    const { server, send, call, lines } = newServer();
    for (const line of ["", "  ", "{", "[]", "7", '{"id": {}, "method": "ping"}', '{"id": 1}'])
      await server.take(line);
    await send({ id: "a", method: "prompts/list" });
    await call(2, "rm");
    await send({ id: 3, method: "tools/call" });
    await send({ id: 4, method: "ping" });
    const codes = lines.map(({ id, error }) => [id, (error as { code?: number })?.code]);
    expect(codes).toEqual([
      [null, -32_700],
      [null, -32_600],
      [null, -32_600],
      [null, -32_600],
      [1, -32_600],
      ["a", -32_601],
      [2, -32_602],
      [3, -32_602],
      [4, undefined],
    ]);
    expect(lines.at(-1)?.["result"]).toEqual({});
  });

  it("calls overlap and are answered as they end, and one that is cancelled is ended", async () => {
    const { send, call, calls, lines } = newServer();
    const all = [call(1, "status"), call(2, "agents"), call(3, "mail", {})];
    calls[1]?.end();
    await all[1];
    await send({ method: "notifications/cancelled", params: { requestId: 3 } });
    await all[2];
    calls[0]?.end();
    await all[0];
    const told = lines.map(({ id, result }) => [id, (result as { isError: boolean }).isError]);
    expect(told).toEqual([
      [2, false],
      [3, true],
      [1, false],
    ]);
  });

  it("at most eight calls run at once, and 30 tasks are made within an hour", async () => {
    const { call, calls, lines, pass } = newServer();
    const textOf = (at: number): string => JSON.stringify(lines.at(at)?.["result"]);
    const eight = Array.from({ length: 8 }, (_, n) => call(n, "status"));
    await call(8, "status");
    expect(textOf(-1)).toContain("8 calls run");
    for (const one of calls.splice(0)) one.end();
    await Promise.all(eight);
    const make = async (id: number): Promise<void> => {
      const made = call(id, "enqueue", { agent: "a", prompt: "x" });
      for (const one of calls.splice(0)) one.end();
      await made;
    };
    for (let n = 0; n < 30; n++) await make(n);
    expect(textOf(-1)).toContain("done enqueue");
    await make(30);
    expect(textOf(-1)).toContain("at most 30 tasks within an hour");
    pass(60 * 60 * 1000);
    await make(31);
    expect(textOf(-1)).toContain("done enqueue");
  });

  it.each([
    ["say", { to: "june", text: "x" }],
    ["say", { to: ["june"] }],
    ["say", { to: ["--help"], text: "x" }],
    ["say", { to: ["june"], text: "a\0b" }],
    ["task", { id: "-x" }],
    ["status", { state: "/etc" }],
    ["enqueue", { agent: "a", prompt: "x", exec: ["true"] }],
    ["wait", { ids: ["a"], seconds: 4000 }],
    ["mail", []],
  ])("%s is not called with %j", async (name, args) => {
    const { call, calls, lines } = newServer();
    await call(1, name, args);
    expect(calls).toEqual([]);
    expect(lines).toMatchObject([{ id: 1, result: { isError: true } }]);
  });
});

describe("an argument that a tool does not have", () => {
  it.each(TOOLS.map((tool) => [tool.spec.name, tool] as const))(
    "is answered by %s with the names of those that it has",
    (name, { check, spec }) => {
      const known = Object.keys(spec.inputSchema["properties"]);
      // Also when a required one is missing: the unknown name stands for it.
      expect(check({ no_such_name: 1 })?.message).toBe(
        known.length === 0
          ? `${name} has no argument "no_such_name": it takes no arguments`
          : `${name} has no argument "no_such_name": its arguments are ${known.join(", ")}`,
      );
    },
  );
});

describe("what a verb says", () => {
  it.each([
    ["status", { code: 0 }, false],
    ["status", { code: 3 }, true],
    ["status", { code: null }, true],
    ["plan_next", { code: 3 }, false],
    ["plan_next", { code: 78 }, true],
  ])("of %s with %j counts as an error: %s", async (name, said, isError) => {
    const { call, calls, lines } = newServer();
    const called = call(1, name);
    calls[0]?.end({ ...said, stdout: "out\n", stderr: "err\n" });
    await called;
    const content = [{ type: "text", text: "out\nerr" }];
    expect(lines).toMatchObject([{ id: 1, result: { content, isError } }]);
  });

  it("is kept from its beginning, and that of a log from its end", async () => {
    const { call, calls } = newServer();
    const both = [call(1, "status"), call(2, "log", { id: "a" })];
    expect(calls.map(({ kept }) => kept)).toEqual([
      { bytesMax: 50_000, end: "first" },
      { bytesMax: 50_000, end: "last" },
    ]);
    for (const { end } of calls) end();
    await Promise.all(both);
  });
});

describe("a result", () => {
  const read = (send: (message: object) => Promise<void>, uri: unknown): Promise<void> =>
    send({ id: 1, method: "resources/read", params: { uri } });
  const document = (known: object): Partial<Said> => ({ stdout: JSON.stringify(known) });
  const error = { message: "no task", hint: "look" };

  it.each([
    [
      document({ record: { output: "x" } }),
      { result: { contents: [{ text: expect.anything() }] } },
    ],
    [document({ state: "waiting", record: null }), { error: { code: -32_002 } }],
    [{ code: 3, stderr: JSON.stringify({ error }) }, { error: { message: "no task: look" } }],
    [{ code: null, stderr: "no memory\n" }, { error: { code: -32_002, message: "no memory" } }],
    [{ isCut: true, stdout: "{" }, { error: { code: -32_000 } }],
  ])("of which `show` says %j", async (said, answer) => {
    const { send, calls, lines } = newServer();
    const called = read(send, "mailchute://results/a%20b");
    expect(calls[0]?.argv).toEqual(["show", "a b", "--json"]);
    calls[0]?.end(said);
    await called;
    expect(lines).toMatchObject([{ id: 1, ...answer }]);
  });

  it.each([
    undefined,
    7,
    "file:///etc/passwd",
    "mailchute://results/",
    "mailchute://results/-x",
    "mailchute://results/%",
    "mailchute://results/a%00",
  ])("is not read at %j", async (uri) => {
    const { send, calls, lines } = newServer();
    await read(send, uri);
    expect(calls).toEqual([]);
    expect(lines).toMatchObject([{ error: { code: -32_602 } }]);
  });

  it("is listed when its task is done or has failed, and not when eight calls run", async () => {
    const { send, call, calls, lines } = newServer();
    const listed = send({ id: "a", method: "resources/list" });
    for (const id of ["b c", "d"]) {
      const one = calls.pop();
      expect(one?.argv.slice(0, 1)).toEqual(["ls"]);
      one?.end(document({ tasks: [{ id, title: null, state: "done" }] }));
      await new Promise(setImmediate);
    }
    await listed;
    const resources = [{ uri: "mailchute://results/b%20c", title: "b c" }, { name: "d" }];
    expect(lines).toMatchObject([{ id: "a", result: { resources } }]);
    const eight = Array.from({ length: 8 }, (_, n) => call(n, "status"));
    await send({ id: "e", method: "resources/list" });
    expect(lines.at(-1)).toMatchObject({ id: "e", error: { code: -32_000 } });
    for (const one of calls) one.end();
    await Promise.all(eight);
  });
});

describe("a tool", () => {
  const full: Args = {
    acceptance: ["--x"],
    after: ["a", "b"],
    agent: "coder",
    ack: true,
    argv: ["sh", "--help"],
    context: "c",
    cwd: "/tmp",
    downstream: true,
    failed: true,
    id: "a",
    ids: ["a", "b"],
    last: 3,
    limit: 3,
    mentions: "june",
    name: "kid",
    needs_human: true,
    parent: "p",
    prompt: "--prompt",
    question: "-?",
    reply_to: "m1",
    seconds: 3,
    since: "22:00",
    state_is: "done",
    status: "done",
    task: "--task",
    text: "--json",
    thread: "m1",
    title: "-t",
    to: ["june", "ann"],
  };
  const single: Args = { ...full, to: "june" };

  it("with a list of words names them when another word is given, and its schema lists them", () => {
    const choices = TOOLS.flatMap(({ spec, check }) =>
      Object.entries<{ anyOf?: { const?: unknown }[] }>(spec.inputSchema["properties"]).flatMap(
        ([name, { anyOf = [] }]) =>
          anyOf.length === 0 ? [] : [{ name, check, words: anyOf.map((one) => one.const), spec }],
      ),
    );
    expect(choices.map(({ name, spec }) => `${spec.name}.${name}`)).toEqual([
      "tasks.state_is",
      "plan_status.status",
    ]);
    for (const { check, name, words } of choices) {
      const checkWord = (word: unknown) =>
        check({ ...(name === "status" ? { id: "a" } : {}), [name]: word });
      expect(checkWord("bogus")?.message).toContain(`${name}: expected one of ${words.join(", ")}`);
      for (const word of words) expect(checkWord(word)).toBeUndefined();
    }
  });

  it.each(TOOLS)("$spec.name says what its verb understands, whatever the texts", async (tool) => {
    const { required = [], properties } = tool.spec.inputSchema as unknown as {
      required?: string[];
      properties: Record<string, { type: string }>;
    };
    expect(Object.hasOwn(REGISTRY, tool.verb)).toBe(true);
    const command = await loadCommand(tool.verb);
    for (const names of [required, Object.keys(properties)]) {
      const source = properties["to"]?.type === "string" ? single : full;
      const args = Object.fromEntries(names.map((name) => [name, source[name]]));
      expect(tool.check(args)).toBeUndefined();
      const words = tool.words(args as Args, "pat");
      const parsed = parseArguments(tool.verb, words, { ...command.options, ...SHARED_OPTIONS });
      expect(parsed.values["json"]).toBe(false);
      expect(parsed.values["help"]).toBe(false);
      const { min, max } = command.args ?? { min: 0, max: 0 };
      const hasSub = Object.hasOwn(command.subcommands ?? {}, parsed.positionals[0] ?? "");
      const positionals = parsed.positionals.slice(hasSub ? 1 : 0);
      expect(positionals.length).toBeGreaterThanOrEqual(min);
      expect(positionals.length).toBeLessThanOrEqual(max);
      expect(parsed.rest).toEqual(
        tool.spec.name === "enqueue_program" ? args["argv"] : parsed.rest,
      );
    }
  });
});
