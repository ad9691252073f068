/** Our side of the Agent Client Protocol, line by line: what is sent, and which facts follow. */
import { describe, expect, it } from "vitest";
import type { Fact } from "../../../src/agents/stream/facts.ts";
import { applyFact, isRunOver, newRunState } from "../../../src/agents/stream/run-state.ts";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { AcpDialogue } from "../../../src/parts/acp/dialogue.ts";
import { newAcpReader } from "../../../src/parts/acp/read-line.ts";

type Json = Record<string, unknown>;

const INITIALIZED = {
  protocolVersion: 1,
  agentCapabilities: { loadSession: true, sessionCapabilities: { resume: {} } },
};

class Talk {
  readonly sent: Json[] = [];
  readonly state = newRunState();
  readonly facts: Fact[] = [];
  readonly dialogue: AcpDialogue;

  constructor(settings: Partial<AgentSettings> = {}, sessionId?: string) {
    const all: AgentSettings = { name: "a", kind: "acp", ...settings };
    this.dialogue = new AcpDialogue({ settings: all, packet: "go", sessionId, cwd: "/place" });
    const opening = { uuid: "u-1", packet: "go", earlier: [] };
    this.state.unanswered.add("u-1");
    this.dialogue.begin(opening, (text) => this.sent.push(JSON.parse(text) as Json));
  }

  hear(message: Json): Fact[] {
    const facts = this.dialogue.read(JSON.stringify({ jsonrpc: "2.0", ...message }));
    for (const fact of facts) applyFact(this.state, fact);
    this.facts.push(...facts);
    return facts;
  }

  update(update: Json): Fact[] {
    return this.hear({ method: "session/update", params: { sessionId: "s", update } });
  }

  say(text: string): Fact[] {
    return this.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  /** Until its first prompt was sent. */
  opened(more: Json = {}): this {
    this.hear({ id: 1, result: INITIALIZED });
    this.hear({ id: 2, result: { sessionId: "s", ...more } });
    return this;
  }

  get last(): Json {
    return this.sent.at(-1) ?? {};
  }
}

const end = (id: number, stopReason = "end_turn"): Json => ({ id, result: { stopReason } });

describe("the opening", () => {
  it("begins a session in the folder of the run and sends the packet", () => {
    const { sent } = new Talk().opened();
    expect(sent).toMatchObject([
      { id: 1, method: "initialize", params: { protocolVersion: 1 } },
      { id: 2, method: "session/new", params: { cwd: "/place", mcpServers: [] } },
      { id: 100, method: "session/prompt", params: { prompt: [{ type: "text", text: "go" }] } },
    ]);
  });

  it("names the servers of the Model Context Protocol by their paths", () => {
    const talk = new Talk({
      mcp: { files: { command: ["sh", "-c", "x"] }, gone: { command: ["no-such-program"] } },
    });
    talk.hear({ id: 1, result: INITIALIZED });
    expect(talk.last["params"]).toMatchObject({
      mcpServers: [
        { name: "files", command: expect.stringMatching(/^\/.*\/sh$/), args: ["-c", "x"], env: [] },
        { name: "gone", command: "no-such-program", args: [], env: [] },
      ],
    });
  });

  it("resumes without the history, and loads where that is all it can", () => {
    const resumes = new Talk({}, "old");
    resumes.hear({ id: 1, result: INITIALIZED });
    expect(resumes.last).toMatchObject({ method: "session/resume", params: { sessionId: "old" } });
    const loads = new Talk({}, "old");
    loads.hear({ id: 1, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
    expect(loads.last).toMatchObject({ method: "session/load" });
    expect(loads.say("Of an earlier run.")).toEqual([]);
    expect(loads.hear({ id: 2, result: null })).toContainEqual({ fact: "session", id: "old" });
    expect(loads.last).toMatchObject({ method: "session/prompt", params: { sessionId: "old" } });
  });

  it("takes a refusal of the old session for a lost one, and a refusal of the account for that", () => {
    const faultOf = (error: Json): unknown => {
      const talk = new Talk({}, "old");
      talk.hear({ id: 1, result: INITIALIZED });
      const [fact] = talk.hear({ id: 2, error });
      return fact?.fact === "turn_ended" ? fact.end.fault : fact;
    };
    expect(faultOf({ code: -32002, message: "Resource not found" })).toBe("lost_session");
    expect(faultOf({ code: -32603, message: "Internal error" })).toBe("lost_session");
    expect(faultOf({ code: -32000, message: "Authentication required" })).toBe("auth");
    expect(faultOf({ code: -32603, message: "429 Too Many Requests" })).toBe("limit");
  });
});

describe("the turn", () => {
  it("is over with the answer to its prompt, whatever comes after it", () => {
    const talk = new Talk().opened();
    talk.update({ sessionUpdate: "tool_call", toolCallId: "t", title: "ls", kind: "execute" });
    talk.hear(end(100));
    expect(isRunOver(talk.state)).toBe(true);
    talk.update({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "failed" });
    talk.say("One more word.");
    expect(isRunOver(talk.state)).toBe(true);
  });

  it("puts the pieces of a text together, and its last text is what it says", () => {
    const talk = new Talk().opened();
    for (const text of ["I ", "look."]) talk.say(text);
    talk.update({ sessionUpdate: "tool_call", toolCallId: "t", kind: "read", status: "completed" });
    for (const text of ["Do", "ne."]) talk.say(text);
    talk.hear(end(100));
    const said = talk.facts.flatMap((one) => (one.fact === "said" ? [one.text] : []));
    expect(said).toEqual(["I look.", "Done."]);
    expect(talk.state.lastEnd).toMatchObject({ fault: undefined, text: "Done." });
  });

  it("takes no message: that is the next prompt, and proven read when the model works on it", () => {
    const talk = new Talk().opened();
    talk.state.unanswered.add("u-2");
    talk.dialogue.say("u-2", "more");
    expect(talk.last["id"]).toBe(100);
    talk.hear(end(100));
    expect(isRunOver(talk.state)).toBe(false);
    expect(talk.last).toMatchObject({ id: 101, params: { prompt: [{ text: "more" }] } });
    expect(talk.say("Well.")).toContainEqual({ fact: "message", uuid: "u-2", state: "read" });
    talk.hear(end(101));
    expect(isRunOver(talk.state)).toBe(true);
  });

  it("leaves the messages for the next run when it ends badly", () => {
    const talk = new Talk().opened();
    talk.dialogue.say("u-2", "more");
    const facts = talk.hear({ id: 100, error: { code: -32603, message: "401 Unauthorized" } });
    expect(facts).toContainEqual({ fact: "message", uuid: "u-2", state: "cancelled" });
    expect(talk.sent).toHaveLength(3);
  });

  it.each([
    [-32603, "Internal error: The socket connection was closed unexpectedly.", "overload"],
    [-32603, "Cannot connect to API: The socket connection was closed.", "overload"],
    [-32603, "Internal error: terminated", "overload"],
    [-32603, "Internal error: the tool was terminated by a signal", "other"],
    [500, "terminated", "overload"],
    [401, "Request had invalid credentials.", "auth"],
    [429, "Resource has been exhausted.", "limit"],
    [400, "Request contains an invalid argument.", "request"],
    [400, "The input exceeds the context window.", "context"],
  ])("that ends with the error %i, %s, has the fault %s", (code, message, fault) => {
    const talk = new Talk().opened();
    talk.hear({ id: 100, error: { code, message } });
    expect(talk.state.lastEnd).toMatchObject({ fault });
  });

  it.each([
    ["Error: 400 The request is not valid.", "request"],
    ["Info: Request failed. Retrying...Error: Authentication failed (HTTP 401).", "auth"],
    ["Error: the tests do not pass yet.", undefined],
    ["I have seen Error: 401 in the log, and mended it.", undefined],
  ])("that ends well without tokens, with the text %s, has the fault %s", (text, fault) => {
    const talk = new Talk().opened();
    talk.say(text);
    talk.hear(end(100));
    expect(talk.state.lastEnd).toMatchObject({ fault, text });
    const answered = new Talk().opened();
    answered.say(text);
    const usage = { inputTokens: 10, outputTokens: 4 };
    answered.hear({ id: 100, result: { stopReason: "end_turn", usage } });
    expect(answered.state.lastEnd).toMatchObject({ fault: undefined });
  });

  it("is cut for an urgent message, and goes on with it", () => {
    const talk = new Talk().opened();
    expect(talk.dialogue.cut()).toBe(true);
    expect(talk.last).toMatchObject({ method: "session/cancel", params: { sessionId: "s" } });
    talk.dialogue.say("u-2", "now");
    talk.hear(end(100, "cancelled"));
    expect(talk.last).toMatchObject({ id: 101 });
  });
});

describe("a question for a person", () => {
  const options = ["allow_always", "allow_once", "reject_once"].map((kind) => ({
    optionId: `o-${kind}`,
    kind,
  }));
  const ask = (toolCall: Json): Json => ({
    id: "q",
    method: "session/request_permission",
    params: { options, toolCall: { toolCallId: "t", ...toolCall } },
  });
  const answerTo = (settings: Partial<AgentSettings>, toolCall: Json): unknown => {
    const talk = new Talk(settings).opened();
    talk.hear(ask(toolCall));
    const { result } = talk.last as { result: { outcome: Json } };
    return result.outcome["optionId"];
  };

  it.each([
    ["read", "read", "allow"],
    ["read", "edit", "reject"],
    ["read", "execute", "reject"],
    ["edit", "execute", "allow"],
    ["edit", "fetch", "reject"],
    ["edit", "other", "reject"],
    ["full", "fetch", "allow"],
  ] as const)("with mode %s and a tool of kind %s is answered: %s", (mode, kind, how) => {
    expect(answerTo({ permissions: { mode } }, { kind })).toBe(`o-${how}_once`);
  });

  it.each([
    ["/place/a.txt", "allow"],
    ["a.txt", "allow"],
    ["/place/../etc/passwd", "reject"],
    ["../other/a.txt", "reject"],
    ["/places/a.txt", "reject"],
  ])("about the file %s is answered: %s", (path, how) => {
    expect(answerTo({}, { kind: "edit", locations: [{ path }] })).toBe(`o-${how}_once`);
  });

  it("is cancelled once the turn is being cancelled, and without a fitting option", () => {
    const talk = new Talk().opened();
    talk.dialogue.interrupt();
    talk.hear(ask({ kind: "edit" }));
    expect(talk.last).toMatchObject({ id: "q", result: { outcome: { outcome: "cancelled" } } });
    const other = new Talk({ permissions: { mode: "read" } }).opened();
    const { id, method } = ask({});
    other.hear({ id, method, params: { options: [options[0]], toolCall: { kind: "edit" } } });
    expect(other.last).toMatchObject({ result: { outcome: { outcome: "cancelled" } } });
  });

  const begun = (talk: Talk): unknown => [...talk.state.openTools.keys()];
  const completed = { sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed" };

  it("begins the call, where the program does not report that itself, and it proves that the model works", () => {
    const talk = new Talk().opened();
    const facts = talk.hear(ask({ kind: "execute", title: "make" }));
    expect(facts).toContainEqual({ fact: "message", uuid: "u-1", state: "read" });
    expect(begun(talk)).toEqual(["t"]);
    talk.update({ ...completed, kind: "execute" });
    expect([begun(talk), talk.state.toolsDone]).toEqual([[], 1]);
    const twice = new Talk().opened();
    twice.update({ sessionUpdate: "tool_call", toolCallId: "t", kind: "execute" });
    twice.hear(ask({ kind: "execute" }));
    expect(twice.facts.filter(({ fact }) => fact === "tool_started")).toHaveLength(1);
    const denied = new Talk({ permissions: { mode: "read" } }).opened();
    denied.hear(ask({ kind: "execute" }));
    expect(begun(denied)).toEqual([]);
  });

  it.each([
    ["read", "execute", "it has used execute without asking, and its permissions are read"],
    ["read", "edit", "without asking"],
    ["read", "fetch", undefined],
    ["edit", "execute", undefined],
    ["full", "execute", undefined],
  ] as const)(
    "that mode %s wants for a tool of kind %s, and that is not put, ends the run",
    (mode, kind, why) => {
      const talk = new Talk({ permissions: { mode } }).opened();
      talk.update({ sessionUpdate: "tool_call", toolCallId: "t", kind, status: "in_progress" });
      talk.update(completed);
      if (why === undefined) {
        expect(talk.state.lastEnd).toBeUndefined();
        return;
      }
      expect(talk.last).toMatchObject({ method: "session/cancel" });
      talk.hear(end(100, "cancelled"));
      expect(talk.state.lastEnd).toMatchObject({
        fault: "config",
        text: expect.stringContaining(why),
      });
      expect(isRunOver(talk.state)).toBe(true);
    },
  );

  it("is put before each change: a session that begins in another mode is set to that one", () => {
    const modes = {
      currentModeId: "auto",
      availableModes: [{ id: "plan" }, { id: "default" }, { id: "auto" }],
    };
    const talk = new Talk({ permissions: { mode: "edit" } }).opened({ modes });
    expect(talk.last).toMatchObject({
      id: 5,
      method: "session/set_mode",
      params: { sessionId: "s", modeId: "default" },
    });
    talk.hear({ id: 5, result: {} });
    expect(talk.last).toMatchObject({ method: "session/prompt" });
    const refused = new Talk().opened({ modes });
    refused.hear({ id: 5, error: { message: "no" } });
    expect(refused.state.lastEnd).toMatchObject({ fault: "config", text: "mode default: no" });
    for (const [permissions, more] of [
      [{ mode: "full" }, { modes }],
      [{ mode: "read" }, { modes: { ...modes, currentModeId: "default" } }],
      [{ mode: "read" }, { modes: { currentModeId: "act", availableModes: [{ id: "act" }] } }],
    ] as const)
      expect(new Talk({ permissions }).opened(more).last).toMatchObject({ id: 100 });
  });

  it("of another method is refused, and the program goes on", () => {
    const talk = new Talk().opened();
    talk.hear({ id: 7, method: "terminal/create", params: {} });
    expect(talk.last).toMatchObject({ id: 7, error: { code: -32601 } });
  });
});

describe("the cost", () => {
  const cost = (amount: number, currency = "USD"): Json => ({
    sessionUpdate: "usage_update",
    used: 1,
    size: 2,
    cost: { amount, currency },
  });
  const booked = ({ state }: Talk): unknown => state.partUsage;

  it("of a new session is what its sum has grown, and of a resumed one not what earlier runs have booked", () => {
    const fresh = new Talk().opened();
    for (const amount of [0.2, 0.5]) fresh.update(cost(amount));
    expect(booked(fresh)).toMatchObject({ costUsdMicro: 500_000 });
    const resumed = new Talk({}, "old").opened();
    for (const amount of [0.5, 0.75]) resumed.update(cost(amount));
    expect(booked(resumed)).toMatchObject({ costUsdMicro: 250_000 });
  });

  it("in another currency is not known, and tokens come with the end of the turn", () => {
    const talk = new Talk().opened();
    talk.update(cost(3, "EUR"));
    const usage = { inputTokens: 10, outputTokens: 4, thoughtTokens: 1, cachedReadTokens: 5 };
    talk.hear({ id: 100, result: { stopReason: "end_turn", usage } });
    expect(booked(talk)).toEqual({
      inputTokens: 15,
      cachedInputTokens: 5,
      outputTokens: 5,
      costUsdMicro: null,
    });
  });
});

it("a log is read without our side of it, and strange lines throw nothing", () => {
  const read = newAcpReader();
  const lines = [
    JSON.stringify({ id: 1, result: INITIALIZED }),
    JSON.stringify({ id: 2, result: { sessionId: "s" } }),
    "no json",
    "[]",
    "null",
    JSON.stringify({ id: 100 }),
    ...["constructor", "toString", "__proto__"].flatMap((name) => [
      JSON.stringify({ id: 101, result: { stopReason: name } }),
      JSON.stringify({ method: "session/update", params: { update: { sessionUpdate: name } } }),
    ]),
    JSON.stringify({ method: "session/update", params: { update: { sessionUpdate: 5 } } }),
    JSON.stringify({ method: "session/update", params: null }),
    JSON.stringify({ id: null, result: {} }),
    JSON.stringify({ id: "x", method: "fs/read_text_file" }),
  ];
  const facts = lines.flatMap((line) => read(line));
  expect(facts).toContainEqual({ fact: "session", id: "s" });
  expect(facts).toContainEqual({ fact: "notice", text: "it asks: fs/read_text_file" });
});
