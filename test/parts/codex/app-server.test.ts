/** `codex app-server` (captured from 0.169.0): what its lines say, and what we ask it for. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { AppServerReader, messagesIn } from "../../../src/parts/codex/app-server.ts";
import {
  answerLine,
  INITIALIZED_LINE,
  initialize,
  interruptTurn,
  listItems,
  requestLine,
  resumeThread,
  startThread,
  startTurn,
  steerTurn,
} from "../../../src/parts/codex/app-server-requests.ts";
import { factsOf, kindOf, play, sampleLines, sampleNames } from "./replay.ts";

const THREAD = "01a20adc-4d70-7f81-a3fb-77cd62d21dbd";
const server = (name: string, how = {}) =>
  play({ appServer: sampleLines(`app-server${name}.jsonl`), ...how });

const RUNS: readonly (readonly [string, string])[] = [
  ["", "completed"],
  ["-compaction", "completed"],
  ["-resume", "completed"],
  ["-late-steer", "completed"],
  ["-usage-limit", "deferred"],
  ["-500", "deferred"],
  ["-401", "deferred"],
  ["-billing", "config"],
  ["-declined", "permission"],
  ["-interrupt", "interrupted"],
  ["-interrupt-after-steer", "interrupted"],
  ["-stdin-closed", "interrupted"],
  ["-lost-session", "fresh_session"],
];

describe("a captured conversation comes to", () => {
  test.each(RUNS)("%s: %s", (name, kind) => {
    const run = server(name, { run: { isResumed: true } });
    expect(kindOf(run)).toBe(kind);
    expect(factsOf(run, "unknown")).toEqual([]);
  });

  it("one of these, whichever sample it is", () => {
    expect(RUNS.map(([name]) => name).sort()).toEqual(sampleNames(/^app-server/));
  });
});

it("tells session, version, model, tools, words and tokens", () => {
  const run = server("");
  expect(factsOf(run, "session")).toEqual([
    { fact: "session", id: THREAD, version: "0.169.0", model: "mock-model" },
  ]);
  expect(factsOf(run, "tool_ended").map((f) => [f.id, f.exitCode, f.isError])).toEqual([
    ["call_1", 0, false],
    ["call_4", 3, true],
  ]);
  expect(factsOf(run, "thought")).toHaveLength(1);
  expect(run.outcome).toMatchObject({ kind: "completed", output: "All done." });
  const sums = factsOf(run, "usage").map(({ of, usage }) => [of, usage.inputTokens]);
  expect(sums.at(-1)).toEqual(["session", 6000]);
});

it("tells when the model has a message of ours, as often as it reads it", () => {
  const read = factsOf(server(""), "message");
  expect(read).toEqual([
    { fact: "message", uuid: "mail-0001", state: "read" },
    { fact: "message", uuid: "mail-0001", state: "read" },
  ]);
});

it("leaves a message unanswered that the program took and forgot when the turn was interrupted", () => {
  const run = server("-interrupt-after-steer");
  const [end] = factsOf(run, "turn_ended");
  expect(end?.end).toMatchObject({ fault: "interrupted", answers: ["first-0001"] });
});

it("tells the time of a usage limit as a number", () => {
  const run = server("-usage-limit");
  expect(run.state.quotaUntilMs).toBe(1_795_561_565_000);
});

it("tells of the sum of the thread before the first turn after a resume", () => {
  const run = server("-resume");
  const usage = factsOf(run, "usage").map((f) => f.usage.inputTokens);
  expect(usage).toEqual([7200, 8400]);
});

it("tells of compaction by its item, and of a retry with its status", () => {
  expect(factsOf(server("-compaction"), "compacting")).toHaveLength(1);
  expect(factsOf(server("-compaction"), "compacted")).toHaveLength(1);
  expect(factsOf(server("-401"), "api_retry")).toMatchObject([{ status: 401 }]);
});

describe("the reader", () => {
  const line = (value: object): string => JSON.stringify(value);

  it("names the turn that has begun, the answers to our requests and what was refused", () => {
    const reader = new AppServerReader();
    const taken = sampleLines("app-server-late-steer.jsonl").map((each) => reader.take(each));
    expect(new Set(taken.map(({ turnId }) => turnId).filter((id) => id !== undefined)).size).toBe(
      1,
    );
    expect(taken.map(({ reply }) => reply?.error).filter((error) => error !== undefined)).toEqual([
      "no active turn to steer",
    ]);
  });

  it("passes on what the program asks", () => {
    const reader = new AppServerReader();
    const asks = sampleLines("app-server-declined.jsonl").map((each) => reader.take(each).ask);
    expect(asks.filter((ask) => ask !== undefined)).toEqual([
      { id: 0, method: "item/commandExecution/requestApproval" },
    ]);
  });

  it("leaves out turns of other threads, but not the limits of the account", () => {
    const reader = new AppServerReader();
    reader.take(line({ id: 1, result: { thread: { id: "ours" }, model: "m" } }));
    const turn = { id: "x", status: "completed" };
    expect(
      reader.take(line({ method: "turn/completed", params: { threadId: "theirs", turn } })).facts,
    ).toEqual([]);
    expect(
      reader.take(line({ method: "turn/completed", params: { threadId: "ours", turn } })).facts,
    ).toHaveLength(1);
    const rateLimits = { primary: { usedPercent: 5, resetsAt: 9 } };
    expect(
      reader.take(line({ method: "account/rateLimits/updated", params: { rateLimits } })).facts,
    ).toHaveLength(1);
  });

  it.each([
    ["serverOverloaded", "overload"],
    [{ responseTooManyFailedAttempts: { httpStatusCode: 429 } }, "limit"],
    [{ httpConnectionFailed: { httpStatusCode: null } }, "other"],
    ["unauthorized", "auth"],
    ["constructor", "other"],
    [null, "other"],
  ])("takes a failed turn with the code %j for %s", (codexErrorInfo, fault) => {
    const error = { message: "it broke", codexErrorInfo };
    const turn = { id: "x", status: "failed", error };
    const run = play({ appServer: [line({ method: "turn/completed", params: { turn } })] });
    expect(factsOf(run, "turn_ended")[0]?.end.fault).toBe(fault);
  });

  it("passes over pieces of words, and keeps methods that it does not know", () => {
    const reader = new AppServerReader();
    expect(reader.take(line({ method: "item/agentMessage/delta", params: {} })).facts).toEqual([]);
    expect(reader.take(line({ method: "thread/dreams", params: {} })).facts).toEqual([
      { fact: "unknown", type: "thread/dreams" },
    ]);
  });

  it("throws for no line", () => {
    const methods = ["turn/completed", "item/started", "error", "account/rateLimits/updated"];
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        fc.jsonValue({ maxDepth: 3 }),
        fc.option(fc.integer(), { nil: undefined }),
        (text, value, id) => {
          const reader = new AppServerReader();
          reader.take(text);
          for (const method of [...methods, undefined])
            reader.take(JSON.stringify({ id, method, params: value, result: value, error: value }));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("a request", () => {
  const plan = { cwd: "/w", model: "m", permissions: { mode: "read" as const } };

  it("is a line with its id", () => {
    expect(requestLine(3, interruptTurn("t", "u"))).toBe(
      '{"id":3,"method":"turn/interrupt","params":{"threadId":"t","turnId":"u"}}',
    );
    expect(INITIALIZED_LINE).toBe('{"method":"initialized"}');
  });

  it.each([
    [
      initialize("1"),
      "initialize",
      { clientInfo: { name: "mailchute", title: "mailchute", version: "1" }, capabilities: null },
    ],
    [
      startThread(plan),
      "thread/start",
      { cwd: "/w", sandbox: "read-only", approvalPolicy: "never", model: "m" },
    ],
    [
      resumeThread("t", { cwd: "/w", model: undefined, permissions: undefined }),
      "thread/resume",
      {
        threadId: "t",
        cwd: "/w",
        sandbox: "workspace-write",
        approvalPolicy: "never",
        excludeTurns: true,
      },
    ],
    [
      startTurn("t", "m-1", "go"),
      "turn/start",
      {
        threadId: "t",
        clientUserMessageId: "m-1",
        input: [{ type: "text", text: "go", text_elements: [] }],
      },
    ],
    [
      steerTurn("t", "u", "m-2", "also"),
      "turn/steer",
      {
        threadId: "t",
        expectedTurnId: "u",
        clientUserMessageId: "m-2",
        input: [{ type: "text", text: "also", text_elements: [] }],
      },
    ],
    [
      listItems("t", "c"),
      "thread/items/list",
      { threadId: "t", limit: 100, sortDirection: "desc", cursor: "c" },
    ],
  ])("%j has the names of the program", ({ method, params }, name, members) => {
    expect(method).toBe(name);
    expect(params).toEqual(members);
  });

  it("for items is answered with the ids of messages that the thread has had", () => {
    const reader = new AppServerReader();
    const lists = sampleLines("app-server-interrupt-after-steer.jsonl")
      .map((line) => reader.take(line).reply?.result)
      .filter((result) => result?.["data"] !== undefined);
    expect(lists.map((result) => messagesIn(result ?? {}))).toEqual([
      { ids: ["first-0001"], nextCursor: undefined },
    ]);
  });

  it.each([
    [undefined, "decline"],
    [{ mode: "read" }, "decline"],
    [{ mode: "edit" }, "decline"],
    [{ mode: "full" }, "accept"],
  ] as const)(
    "of the program for an approval is answered by the mode: %j, %s",
    (permissions, decision) => {
      for (const what of ["fileChange", "commandExecution"])
        expect(answerLine({ id: 0, method: `item/${what}/requestApproval` }, permissions)).toBe(
          `{"id":0,"result":{"decision":"${decision}"}}`,
        );
    },
  );

  it("of the program for anything else is refused", () => {
    const answer = answerLine({ id: "a", method: "item/tool/call" }, { mode: "full" });
    expect(JSON.parse(answer)).toMatchObject({ id: "a", error: { code: -32601 } });
  });
});
