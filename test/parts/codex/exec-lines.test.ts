/** Lines of `codex exec --json` that are not in the captured runs, and lines that are none. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { newCodexExecReader } from "../../../src/parts/codex/read-exec-line.ts";
import { factsOf, kindOf, play } from "./replay.ts";

const line = (value: object): string => JSON.stringify(value);
const START = [line({ type: "thread.started", thread_id: "t-1" }), line({ type: "turn.started" })];
const SAID = line({ type: "item.completed", item: { id: "i", type: "agent_message", text: "ok" } });
const DONE = line({ type: "turn.completed", usage: { input_tokens: 1, output_tokens: 1 } });
const failed = (message: unknown): string => line({ type: "turn.failed", error: { message } });
const retry = (why: string): string => line({ type: "error", message: `Reconnecting... ${why}` });
const item = (phase: string, members: object): string =>
  line({ type: `item.${phase}`, item: { id: "i", ...members } });

describe("a run comes to", () => {
  test.each<[string, string[], number | null, string]>([
    ["notice of a retry, then success", [...START, retry("1/5"), SAID, DONE], 0, "completed"],
    [
      "an error that ends nothing, then success",
      [...START, line({ type: "error", message: "x" }), DONE],
      0,
      "completed",
    ],
    ["success, and an exit code", [...START, SAID, DONE], 1, "exit"],
    ["a turn that failed, and exit 0", [...START, failed("x")], 0, "agent"],
    ["a turn that failed without a message", [...START, failed(null)], 1, "agent"],
    ["success, then a turn that failed", [...START, DONE, START[1] ?? "", failed("x")], 1, "agent"],
    [
      "a turn that failed, then success",
      [...START, failed("x"), START[1] ?? "", DONE],
      0,
      "completed",
    ],
    ["a second turn without an end", [...START, DONE, START[1] ?? ""], 0, "interrupted"],
    ["no terminal event", [...START, SAID], 0, "interrupted"],
    [
      "an error, and no terminal event",
      [...START, line({ type: "error", message: "status 401" })],
      1,
      "interrupted",
    ],
    ["an empty stream", [], 0, "interrupted"],
    ["rubbish alone", ["\u0000\u0001ÿ{", "null", "[]", '"x"', "{}"], 0, "interrupted"],
    ["rubbish in between", [...START, "}{", "\u0000", '{"type":7}', DONE], 0, "completed"],
    [
      "types that are not known",
      [...START, line({ type: "turn.paused" }), item("moved", { type: "x" }), DONE],
      0,
      "completed",
    ],
    ["a torn last line", [...START, SAID, DONE.slice(0, 20)], null, "interrupted"],
  ])("%s", (_, exec, exitCode, kind) => {
    expect(kindOf(play({ exec, exitCode }))).toBe(kind);
  });
});

describe("a turn fails for the reason in its message", () => {
  test.each([
    ["unexpected status 401 Unauthorized: token expired, url: http://h:8503/v1", "auth"],
    ["unexpected status 402 Payment Required: x", "config"],
    ["unexpected status 404 Not Found: x", "config"],
    ["unexpected status 502 Bad Gateway: usage limit", "overload"],
    ["exceeded retry limit, last status: 429 Too Many Requests", "limit"],
    ["exceeded retry limit, last status: 503 Service Unavailable", "overload"],
    [
      "You've hit your usage limit. Visit x to purchase more credits or try again at 1:00 AM.",
      "limit",
    ],
    ["Quota exceeded. Check your plan and billing details.", "config"],
    ["stream disconnected before completion: idle timeout", "overload"],
    ["Your refresh token was revoked. Please log out and sign in again.", "auth"],
    ["The 'gpt-9' model is not supported when using Codex with a ChatGPT account.", "config"],
    ["no rollout found for thread id 01a20000", "lost_session"],
    ["the tests of model 401 failed", "other"],
    ["unexpected status 413 Payload Too Large: x", "request"],
    ["unexpected status 400 Bad Request: the prompt is too long", "request"],
    [
      '{"error":{"message":"Timeout while downloading x.png","code":"invalid_image_url"}}',
      "request",
    ],
    ['{"error":{"message":"You may not","code":"model_not_found"}}', "config"],
    ['{"error":{"message":"Your account is not active, check your billing details"}}', "config"],
    ["Bad Request", "request"],
    ["", "other"],
  ])("%s: %s", (message, fault) => {
    const [end] = factsOf(play({ exec: [...START, failed(message)] }), "turn_ended");
    expect(end?.end.fault).toBe(fault);
  });
});

describe("an item", () => {
  const facts = (...lines: string[]): unknown[] => lines.flatMap(newCodexExecReader());

  it("of a call that is told of only at its end has a beginning, too", () => {
    const search = { type: "web_search", query: "cats" };
    expect(facts(item("completed", search))).toEqual([
      { fact: "tool_started", id: "i", name: "web_search", input: "cats" },
      { fact: "tool_ended", id: "i", output: "", exitCode: null, isError: false },
    ]);
  });

  it("of a server's tool has its name, its arguments and its result", () => {
    const call = { type: "mcp_tool_call", server: "s", tool: "t", arguments: { a: 1 } };
    expect(
      facts(
        item("started", { ...call, status: "in_progress" }),
        item("completed", { ...call, status: "failed", error: { message: "gone" } }),
      ),
    ).toEqual([
      { fact: "tool_started", id: "i", name: "s.t", input: '{"a":1}' },
      { fact: "tool_ended", id: "i", output: "gone", exitCode: null, isError: true },
    ]);
  });

  it("that was declined is a tool that it may not use", () => {
    const call = { type: "file_change", changes: [{ path: "a", kind: "add" }], status: "declined" };
    const run = play({ exec: [...START, item("completed", call), DONE] });
    expect(kindOf(run)).toBe("permission");
    expect(run.state.changedFiles).toBe(0);
  });

  it("with a list of work is a notice", () => {
    const items = [
      { text: "one", completed: true },
      { text: "two", completed: false },
    ];
    expect(facts(item("started", { type: "todo_list", items }))).toEqual([
      { fact: "notice", text: "[x] one\n[ ] two" },
    ]);
  });

  it.each(["context_compaction", "contextCompaction", "compaction"])("%s is compaction", (type) => {
    expect(facts(item("started", { type }), item("completed", { type }))).toEqual([
      { fact: "compacting" },
      { fact: "compacted" },
    ]);
  });

  it("of a type that is not known is kept under its type", () => {
    expect(facts(item("completed", { type: "dream" }))).toEqual([
      { fact: "unknown", type: "item.completed dream" },
    ]);
  });
});

it("takes context_compacted for compaction", () => {
  expect(newCodexExecReader()('{"type":"context_compacted"}')).toEqual([{ fact: "compacted" }]);
});

it("reads a line of 50 MB", () => {
  const output = "x".repeat(50 * 1024 * 1024);
  const call = { type: "command_execution", command: "c", status: "completed", exit_code: 0 };
  const big = item("completed", { ...call, aggregated_output: output });
  const run = play({ exec: [...START, big, DONE] });
  expect(factsOf(run, "tool_ended")[0]?.output.length).toBe(output.length);
  expect(kindOf(run)).toBe("completed");
});

it("puts only a part of a long text or message into a record", () => {
  const text = `${"x".repeat(50 * 1024 * 1024)}the end`;
  const said = play({ exec: [...START, item("completed", { type: "agent_message", text }), DONE] });
  const { output } = said.outcome as { output: string };
  expect(output.length).toBe(1024 * 1024);
  expect(output.endsWith("the end")).toBe(true);
  const { message } = play({ exec: [...START, failed(`why: ${text}`)] }).outcome as {
    message: string;
  };
  expect(message.length).toBeLessThan(5000);
  expect(message).toContain("why: x");
});

it("reads arguments that nest deeper than they can be written", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const call = `{"type":"item.started","item":{"id":"i","type":"mcp_tool_call","arguments":${deep}}}`;
  expect(kindOf(play({ exec: [...START, call, DONE] }))).toBe("completed");
});

it("throws for no line", () => {
  const words = ["type", "item", "id", "error", "message", "usage", "status", "changes", "kind"];
  const types = ["item.completed", "item.started", "turn.failed", "turn.completed", "error"];
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(...types, "file_change", "todo_list", "mcp_tool_call", "reasoning"),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const names = fc.constantFrom(...words, "path", "items", "input_tokens", "__proto__");
  const members = fc.dictionary(names, leaf, { maxKeys: 5 });
  const events = fc.dictionary(names, fc.oneof(leaf, members, fc.array(members, { maxLength: 3 })));
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string(), events.map(line)), { maxLength: 4 }), (lines) => {
      expect(() => lines.flatMap(newCodexExecReader())).not.toThrow();
    }),
    { numRuns: 1000 },
  );
});
