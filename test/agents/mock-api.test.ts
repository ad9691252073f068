/** The mock of the model APIs: what it answers in each format, and each way in which it can misbehave. */
import { describe, expect, it, onTestFinished } from "vitest";
import { readScenario, type Scenario, type Step } from "../../src/agents/mock-api/script.ts";
import {
  type MockApi,
  type MockApiOptions,
  startMockApi,
} from "../../src/agents/mock-api/server.ts";
import { waitFor } from "../support/wait-for.ts";

async function start(scenario: Scenario, options: MockApiOptions = {}): Promise<MockApi> {
  const api = await startMockApi(scenario, options);
  onTestFinished(() => api.close());
  return api;
}

interface Ask {
  text?: string;
  key?: string;
  stream?: boolean;
  tools?: object[];
  signal?: AbortSignal;
  path?: string;
}

/** A request as claude makes it. */
const askMessages = (
  { url }: MockApi,
  { text = "go", key = "k-0001", stream = true, tools, signal, path = "" }: Ask = {},
): Promise<Response> =>
  fetch(`${url}/v1/messages${path}?beta=true`, {
    method: "POST",
    headers: { "x-api-key": key },
    body: JSON.stringify({
      model: "model-a",
      stream,
      max_tokens: 100,
      messages: [{ role: "user", content: [{ type: "text", text }] }],
      ...(tools && { tools }),
    }),
    ...(signal && { signal }),
  });

/** A request as codex makes it. */
const askResponses = (
  { url }: MockApi,
  { text = "go", key = "k-0001", stream = true, tools = [], signal, path = "" }: Ask = {},
): Promise<Response> =>
  fetch(`${url}/v1/responses${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "model-b",
      stream,
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
      tools,
    }),
    ...(signal && { signal }),
  });

/** A request without tools is one beside the conversation. */
const TOOLS = [{ name: "T" }];

/** A request as programs make it that are compatible with OpenAI's API of chat completions. */
const askChat = (
  { url }: MockApi,
  { text = "go", key = "k-0001", stream = true, tools = TOOLS, signal }: Ask = {},
): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "model-c",
      stream,
      messages: [{ role: "user", content: text }],
      tools: tools.map((one) => ({ type: "function", function: one })),
    }),
    ...(signal && { signal }),
  });

/** A request as Gemini CLI makes it. */
const askGemini = (
  { url }: MockApi,
  { text = "go", key = "k-0001", stream = true, tools = TOOLS, signal, path }: Ask = {},
): Promise<Response> =>
  fetch(
    `${url}/v1beta/models/model-d:${path ?? (stream ? "streamGenerateContent?alt=sse" : "generateContent")}`,
    {
      method: "POST",
      headers: { "x-goog-api-key": key },
      body: JSON.stringify({
        contents: [{ role: "user", parts: [{ text }] }],
        tools: [{ functionDeclarations: tools }],
      }),
      ...(signal && { signal }),
    },
  );

const FORMATS = [
  ["messages", askMessages, "messages"],
  ["responses", askResponses, "responses"],
  ["chat", askChat, "chat/completions"],
  ["gemini", askGemini, "models/model-d:generateContent"],
] as const;

// biome-ignore lint/suspicious/noExplicitAny: what a test looks for is what it checks.
type Json = any;

async function events(answer: Response): Promise<Json[]> {
  const text = await answer.text();
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data));
}

const json = async (answer: Response): Promise<Json> => await answer.json();

/** Everything of one kind of delta, joined. */
const joined = (all: Json[], field: string): string =>
  all.map(({ delta }) => delta?.[field] ?? "").join("");

describe("the Messages API", () => {
  const STEP: Step = {
    think: "Let me see.",
    say: "Here you are.",
    run: "ls",
    usage: { input: 7, cachedInput: 5, cacheWrite: 3, output: 2 },
  };

  it("streams thinking, text and a tool call with their usage", async () => {
    const all = await events(await askMessages(await start([STEP])));
    expect(all[0]).toMatchObject({
      type: "message_start",
      message: { model: "model-a", role: "assistant", content: [], usage: { input_tokens: 7 } },
    });
    expect(joined(all, "thinking")).toBe("Let me see.");
    expect(joined(all, "text")).toBe("Here you are.");
    expect(JSON.parse(joined(all, "partial_json"))).toMatchObject({ command: "ls" });
    expect(all.filter(({ type }) => type === "content_block_stop")).toHaveLength(3);
    expect(all.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use" },
      usage: { cache_read_input_tokens: 5, cache_creation_input_tokens: 3, output_tokens: 2 },
    });
    expect(all.at(-1)).toEqual({ type: "message_stop" });
  });

  it("answers in one body, and counts tokens, without a stream", async () => {
    const api = await start([STEP]);
    expect(await json(await askMessages(api, { path: "/count_tokens" }))).toEqual({
      input_tokens: 1000,
    });
    expect(await json(await askMessages(api, { stream: false }))).toMatchObject({
      content: [{ type: "thinking" }, { type: "text" }, { type: "tool_use", name: "Bash" }],
      stop_reason: "tool_use",
    });
  });

  it("uses up no step for a summary or a title", async () => {
    const api = await start([{ say: "one" }, { say: "two" }]);
    const text = "Your task is to create a detailed summary of the conversation so far";
    expect(joined(await events(await askMessages(api, { text })), "text")).toMatch(/^Summary/);
    expect(joined(await events(await askMessages(api, { tools: [] })), "text")).toBe("ok");
    expect(joined(await events(await askMessages(api)), "text")).toBe("one");
    expect(api.requests.map(({ kind }) => kind)).toEqual(["compaction", "side", "turn"]);
  });

  it.each([
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [529, "overloaded_error"],
  ])("refuses with %i as the real one does", async (status, type) => {
    const answer = await askMessages(await start([{ status, headers: { "retry-after": "3" } }]));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("retry-after")).toBe("3");
    expect(await json(answer)).toMatchObject({ type: "error", error: { type } });
  });

  it("tells how full an account's windows are, with an answer and with a refusal", async () => {
    const windows = {
      fiveHour: { used: 0.5, resetsAt: 90 },
      sevenDay: { used: 0.8, resetsAt: 99 },
    };
    const api = await start([{ windows }, { usageLimit: 70 }]);
    const header = (answer: Response, name: string): string | null =>
      answer.headers.get(`anthropic-ratelimit-unified-${name}`);
    const good = await askMessages(api);
    expect(header(good, "status")).toBe("allowed");
    expect(header(good, "representative-claim")).toBe("seven_day");
    expect(header(good, "5h-utilization")).toBe("0.5");
    expect(header(good, "7d-reset")).toBe("99");
    const bad = await askMessages(api);
    expect(bad.status).toBe(429);
    expect(header(bad, "5h-status")).toBe("rejected");
    expect(header(bad, "reset")).toBe("70");
  });

  it("says an error within a stream", async () => {
    const answer = await askMessages(await start([{ status: 529, inStream: true }]));
    expect(answer.status).toBe(200);
    expect((await events(answer)).map(({ type }) => type)).toEqual(["message_start", "error"]);
  });
});

describe("the Responses API", () => {
  it("streams reasoning, a message and a call of the shell that is offered", async () => {
    const api = await start([
      {
        think: "Let me see.",
        say: "Here.",
        run: "ls",
        usage: { input: 7, cachedInput: 5, output: 2, reasoning: 1 },
      },
    ]);
    const all = await events(await askResponses(api, { tools: [{ name: "shell_command" }] }));
    const done = all.filter(({ type }) => type === "response.output_item.done");
    expect(done.map(({ item }) => item)).toMatchObject([
      { type: "reasoning", summary: [{ text: "Let me see." }] },
      { type: "message", content: [{ text: "Here." }] },
      { type: "function_call", name: "shell_command", arguments: '{"command":"ls"}' },
    ]);
    expect(all[0]).toMatchObject({ type: "response.created" });
    expect(all.at(-1)).toMatchObject({
      type: "response.completed",
      response: {
        usage: {
          input_tokens: 12,
          input_tokens_details: { cached_tokens: 5 },
          output_tokens_details: { reasoning_tokens: 1 },
          total_tokens: 14,
        },
      },
    });
  });

  it("calls a free-form tool when the input is a text", async () => {
    const api = await start([{ tool: "apply_patch", input: "*** Begin Patch" }]);
    expect(await json(await askResponses(api, { stream: false }))).toMatchObject({
      output: [{ type: "custom_tool_call", name: "apply_patch", input: "*** Begin Patch" }],
    });
  });

  it("uses up no step for a summary", async () => {
    const api = await start([{ say: "one" }]);
    const text = "You are performing a CONTEXT CHECKPOINT COMPACTION.";
    const summary = await json(await askResponses(api, { text, stream: false }));
    expect(summary.output[0].content[0].text).toMatch(/^Summary/);
    expect(api.requests[0]).toMatchObject({ kind: "compaction", step: -1 });
  });

  it.each([
    [400, "invalid_request_error", null],
    [401, "invalid_request_error", "invalid_api_key"],
    [429, "requests", "rate_limit_exceeded"],
    [500, "server_error", null],
  ])("refuses with %i as the real one does", async (status, type, code) => {
    const answer = await askResponses(await start([{ status, headers: { "retry-after": "3" } }]));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("retry-after")).toBe("3");
    expect(await json(answer)).toMatchObject({ error: { type, code } });
  });

  it("tells of a usage limit with its time, and of windows with any answer", async () => {
    const resetsAt = Math.round(Date.now() / 1000) + 100;
    const api = await start([
      { windows: { sevenDay: { used: 0.25, resetsAt } } },
      { usageLimit: resetsAt },
    ]);
    const good = await askResponses(api);
    expect(good.headers.get("x-codex-secondary-used-percent")).toBe("25");
    const bad = await askResponses(api);
    expect(bad.status).toBe(429);
    expect(bad.headers.get("x-codex-primary-reset-at")).toBe(String(resetsAt));
    expect(await json(bad)).toMatchObject({
      error: { type: "usage_limit_reached", resets_at: resetsAt },
    });
  });

  it("says an error within a stream", async () => {
    const answer = await askResponses(await start([{ status: 429, inStream: true }]));
    expect(answer.status).toBe(200);
    expect((await events(answer)).at(-1)).toMatchObject({
      type: "response.failed",
      response: { error: { code: "rate_limit_exceeded" } },
    });
  });
});

const STEP: Step = {
  think: "Let me see.",
  say: "Here.",
  run: "ls",
  usage: { input: 7, cachedInput: 5, output: 2, reasoning: 1 },
};

describe("the API of chat completions", () => {
  it("streams reasoning, a text and a call of the shell that is offered, and then the usage", async () => {
    const answer = await askChat(await start([STEP]), { tools: [{ name: "run_commands" }] });
    const text = await answer.clone().text();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    const all = await events(answer);
    const deltas = all.map(({ choices: [choice] }) => choice?.delta ?? {});
    expect(deltas.map((one) => one.reasoning_content ?? "").join("")).toBe("Let me see.");
    expect(deltas.map((one) => one.content ?? "").join("")).toBe("Here.");
    expect(deltas.find((one) => one.tool_calls)?.tool_calls).toMatchObject([
      { index: 0, function: { name: "run_commands", arguments: '{"commands":["ls"]}' } },
    ]);
    expect(all.at(-2).choices).toMatchObject([{ finish_reason: "tool_calls" }]);
    expect(all.at(-1).usage).toMatchObject({
      prompt_tokens: 12,
      completion_tokens: 2,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 5 },
    });
  });

  it("answers in one body without a stream, and a title uses up no step", async () => {
    const api = await start([STEP]);
    const title = await json(await askChat(api, { stream: false, tools: [] }));
    expect(title.choices).toMatchObject([{ message: { content: "ok" }, finish_reason: "stop" }]);
    const { choices } = await json(
      await askChat(api, { stream: false, tools: [{ name: "bash" }] }),
    );
    expect(choices).toMatchObject([
      { message: { content: "Here.", tool_calls: [{ function: { name: "bash" } }] } },
    ]);
  });
});

describe("the API of Gemini", () => {
  it("streams a thought, a text and a call of the shell that is offered, and then the usage", async () => {
    const tools = [{ name: "run_shell_command" }];
    const all = await events(await askGemini(await start([STEP]), { tools }));
    const parts = all.flatMap(({ candidates: [one] }) => one.content.parts);
    expect(parts).toMatchObject([
      { text: "Let me see.", thought: true },
      { text: "Her" },
      { text: "e." },
      { functionCall: { name: "run_shell_command", args: { command: "ls" } } },
    ]);
    expect(all.at(-1)).toMatchObject({
      modelVersion: "model-d",
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: 12,
        cachedContentTokenCount: 5,
        candidatesTokenCount: 1,
        thoughtsTokenCount: 1,
        totalTokenCount: 14,
      },
    });
  });

  it("answers in one body, and counts tokens, without a stream", async () => {
    const api = await start([STEP]);
    expect(await json(await askGemini(api, { path: "countTokens" }))).toEqual({
      totalTokens: 1000,
    });
    const { candidates } = await json(await askGemini(api, { stream: false }));
    expect(candidates[0].content.parts).toHaveLength(4);
    expect(api.requests.map(({ kind, model }) => [kind, model])).toEqual([
      ["count", "model-d"],
      ["turn", "model-d"],
    ]);
  });
});

it.each([
  ["chat", askChat, 401, { type: "invalid_request_error", code: "invalid_api_key" }],
  ["chat", askChat, 429, { type: "requests", code: "rate_limit_exceeded" }],
  ["gemini", askGemini, 401, { code: 401, status: "UNAUTHENTICATED" }],
  ["gemini", askGemini, 429, { code: 429, status: "RESOURCE_EXHAUSTED" }],
  ["gemini", askGemini, 503, { code: 503, status: "UNAVAILABLE" }],
] as const)("%s refuses as the real one does: %#", async (_, ask, status, error) => {
  const api = await start([
    { status, headers: { "retry-after": "3" } },
    { status, inStream: true },
  ]);
  const answer = await ask(api);
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([status, "3"]);
  expect(await json(answer)).toMatchObject({ error });
  const inStream = await ask(api);
  expect(inStream.status).toBe(200);
  expect((await events(inStream)).at(-1)).toMatchObject({ error });
});

describe.each(FORMATS)("in the format of %s", (format, ask, path) => {
  const textIn: Record<string, (event: Json) => string | undefined> = {
    messages: ({ delta }) => delta?.text,
    responses: ({ delta }) => delta,
    chat: ({ choices }) => choices?.[0]?.delta.content,
    gemini: ({ candidates }) => candidates?.[0].content.parts[0]?.text,
  };
  const said = async (answer: Response): Promise<string> =>
    (await events(answer)).map((event) => textIn[format]?.(event) ?? "").join("");

  it("answers one request with each step, as often as it says, and all later ones with the last", async () => {
    const api = await start([{ say: "one", times: 2 }, { say: "two" }, { say: "three" }]);
    const texts: string[] = [];
    for (let request = 0; request < 5; request++) texts.push(await said(await ask(api)));
    expect(texts).toEqual(["one", "one", "two", "three", "three"]);
    expect(api.requests.map(({ step }) => step)).toEqual([0, 0, 1, 2, 2]);
  });

  it("gives each conversation its own steps, by what its user says or by its key", async () => {
    const api = await start(
      readScenario({
        conversations: [
          { marker: "task-a", steps: [{ say: "a1" }, { say: "a2" }] },
          { key: "0002", steps: [{ status: 401 }] },
        ],
      }),
    );
    expect(await said(await ask(api, { text: "do task-a now" }))).toBe("a1");
    expect((await ask(api, { key: "k-0002" })).status).toBe(401);
    expect(await said(await ask(api, { text: "task-a" }))).toBe("a2");
    expect(await said(await ask(api, { text: "other" }))).toBe("ok");
    expect(api.requests.map(({ conversation }) => conversation)).toEqual([
      "task-a",
      "0002",
      "task-a",
      "none",
    ]);
  });

  it("records what was asked", async () => {
    const api = await start([{ say: "one" }]);
    await ask(api, { text: `hello ${"x".repeat(1000)}`, tools: [{ name: "T" }] });
    const [request] = api.requests;
    expect(request).toMatchObject({ format, kind: "turn", key: "0001", tools: ["T"] });
    expect(request?.messages).toHaveLength(1);
    expect(request?.messages[0]).toMatch(/^user: hello x{200}/);
    expect(request?.messages[0]?.length).toBeLessThan(400);
  });

  it("records all of it, when that is wanted", async () => {
    const api = await start([], { isWhole: true });
    const text = `hello ${"x".repeat(1000)}`;
    await ask(api, { text });
    expect(api.requests[0]?.messages).toEqual([`user: ${text}`]);
  });

  it("refuses until a time has come", async () => {
    const until = Math.ceil(Date.now() / 1000) + 1;
    const api = await start([{ usageLimit: until, until }, { say: "open" }]);
    expect((await ask(api)).status).toBe(429);
    const open = await waitFor(
      async () => {
        const answer = await ask(api);
        return answer.status === 200 ? answer : undefined;
      },
      { what: "an answer after the limit" },
    );
    expect(Date.now()).toBeGreaterThanOrEqual(until * 1000);
    expect(await said(open)).toBe("open");
  });

  it("waits before it answers", async () => {
    const api = await start([{ say: "late", delayMs: 200 }]);
    const from = performance.now();
    expect(await said(await ask(api))).toBe("late");
    expect(performance.now() - from).toBeGreaterThan(190);
  });

  it("answers nothing when it hangs, and still closes", async () => {
    const api = await startMockApi([{ hang: true }]);
    const asked = ask(api).then(
      () => "answered",
      () => "dropped",
    );
    await waitFor(() => api.requests.length > 0, { what: "the request" });
    await api.close();
    expect(await asked).toBe("dropped");
  });

  it.each([true, false])("drops the connection in the middle (as a stream: %s)", async (stream) => {
    const answer = await ask(await start([{ say: "never whole", cut: true }]), { stream });
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });

  it("resets the connection in the middle of an answer", async () => {
    const answer = await ask(await start([{ say: "never whole", cut: "reset" }]));
    await expect(answer.text()).rejects.toThrow();
  });

  it.each([true, false])(
    "ends an answer in good order after its half (stream: %j)",
    async (stream) => {
      const api = await start([{ say: "never whole", half: true }, { say: "never whole" }]);
      const half = await (await ask(api, { stream })).text();
      const whole = await (await ask(api, { stream })).text();
      expect(half).not.toBe("");
      expect(half.length).toBeLessThan(whole.length);
    },
  );

  it("waits before each event of a slow answer", async () => {
    const api = await start([{ say: "slow", eventDelayMs: 20 }]);
    const startedMs = performance.now();
    const text = await (await ask(api)).text();
    const events = text.split("\n\n").length - 1;
    expect(events).toBeGreaterThanOrEqual(3);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(events * 19);
  });

  it("sends rubbish with status 200", async () => {
    const answer = await ask(await start([{ garbage: true }]));
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain("not a stream");
  });

  it("has no stream for an error to come in when none was asked for", async () => {
    const api = await start([{ status: 500, inStream: true }]);
    expect((await ask(api, { stream: false })).status).toBe(500);
  });

  it("refuses a body that is not valid JSON", async () => {
    const { url } = await start([]);
    const answer = await fetch(`${url}/v1/${path}`, { method: "POST", body: "{" });
    expect(answer.status).toBe(400);
  });
});

it("answers what programs look at beside the APIs", async () => {
  const { url } = await start([]);
  expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
  expect(await json(await fetch(`${url}/v1/models`))).toEqual({ data: [], models: [] });
  expect((await fetch(`${url}/other`)).status).toBe(404);
});

it.each([
  [{}, /a list of steps/],
  [[1], /step 1 must be an object/],
  [{ conversations: [{}] }, /conversation 1: steps must be a list/],
])("says what is wrong with a script: %j", (script, message) => {
  expect(() => readScenario(script)).toThrow(message);
});
