/** Streams that no real run has given us: what may come, and rubbish. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newClaudeReader } from "../../../src/parts/claude/read-line.ts";
import { NOW_MS, play } from "./play.ts";

const line = (value: object): string => JSON.stringify(value);
const init = line({ type: "system", subtype: "init", session_id: "s" });
const said = (text: string): string =>
  line({ message: { content: [{ type: "text", text }] }, type: "assistant" });
const result = (more: object = {}): string =>
  line({ is_error: false, terminal_reason: "completed", result: "ok", type: "result", ...more });
const answer = (...uuids: string[]): string => result({ user_message_uuids: uuids });
const background = (...ids: string[]): string =>
  line({
    type: "system",
    subtype: "background_tasks_changed",
    tasks: ids.map((task_id) => ({ task_id })),
  });
const started = (uuid: string): string =>
  line({ type: "command_lifecycle", command_uuid: uuid, state: "started" });
const error = (more: object): string =>
  result({ is_error: true, subtype: "success", terminal_reason: "api_error", ...more });
const rejected = line({
  type: "rate_limit_event",
  rate_limit_info: { status: "rejected", resetsAt: 1_795_478_431, rateLimitType: "five_hour" },
});
/** Of 2.1.332, after a 429 with `status: allowed` and `retry-after: 2`. */
const contradicting = line({
  type: "rate_limit_event",
  rate_limit_info: {
    status: "rejected",
    resetsAt: 1_795_478_431,
    rateLimitType: "five_hour",
    isUsingOverage: false,
    unifiedWindows: { five_hour: { utilization: 0.3, resetsAt: 1_795_478_431, status: "allowed" } },
  },
});
const allowed = line({ type: "rate_limit_event", rate_limit_info: { status: "allowed" } });

type Case = readonly [string, readonly string[], Parameters<typeof play>[1], string];
const CASES: readonly Case[] = [
  ["an empty stream", [], {}, "failed interrupted"],
  ["no terminal event", [init, said("done")], {}, "failed interrupted"],
  [
    "a wrong flag",
    [],
    { exitCode: 1, lastWords: "error: unknown option '--x'" },
    "failed config, for good",
  ],
  ["other words on stderr", [], { exitCode: 1, lastWords: "error: boom" }, "failed interrupted"],
  [
    "a lost session of which only stderr tells",
    [],
    { exitCode: 1, lastWords: "No conversation found with session ID: x", isResumed: true },
    "fresh session",
  ],
  [
    "success with is_error",
    [init, error({ api_error_status: 529 })],
    { exitCode: 1 },
    "deferred null",
  ],
  [
    "a fault that only the status names",
    [init, error({ api_error_status: 401 })],
    {},
    "deferred 60000",
  ],
  [
    "an end without a good reason",
    [init, result({ terminal_reason: "max_turns" })],
    {},
    "failed agent",
  ],
  [
    "an error after a good end",
    [init, result(), init, error({ api_error_status: 500 })],
    { exitCode: 1 },
    "deferred null",
  ],
  [
    "a good end after an error",
    [init, error({ api_error_status: 500 }), init, result()],
    {},
    "completed",
  ],
  [
    "a turn that broke off after an error",
    [init, error({ api_error_status: 401 }), init],
    {},
    "failed interrupted",
  ],
  [
    "a result for an earlier message",
    [init, answer("a")],
    { sent: ["a", "b"] },
    "failed interrupted",
  ],
  [
    "a result for the last message, too",
    [init, answer("a"), init, answer("b")],
    { sent: ["a", "b"] },
    "completed",
  ],
  ["an old result without uuids", [init, result()], { sent: ["a"] }, "completed"],
  [
    "a result of the message it has started",
    [started("a"), init, result()],
    { sent: ["a", "b"] },
    "failed interrupted",
  ],
  [
    "a turn about a background task answers nothing",
    [init, result({ origin: { kind: "task-notification" } })],
    { sent: ["a"] },
    "failed interrupted",
  ],
  [
    "success while a background task runs",
    [init, background("t"), result()],
    {},
    "failed interrupted",
  ],
  [
    "no turn after the background task",
    [init, background("t"), result(), background()],
    {},
    "failed interrupted",
  ],
  [
    "the turn after the background task",
    [init, background("t"), result(), background(), init, result()],
    {},
    "completed",
  ],
  ["ended by a signal", [init, result()], { signal: "SIGKILL" }, "failed signal"],
  ["a bad exit after a good end", [init, result()], { exitCode: 3 }, "failed exit"],
  [
    "refused until the end of a window that is not full",
    [init, contradicting],
    { exitCode: 1 },
    "deferred null",
  ],
  ["refused, and no word more", [init, rejected], { exitCode: 1 }, "deferred 100000"],
  [
    "refused, then let in, then broken off",
    [init, rejected, allowed, said("x")],
    { exitCode: 1 },
    "failed interrupted",
  ],
  [
    "binary rubbish around a good run",
    ["\u0000\ufffd{", init, "}{", result(), "[1]"],
    {},
    "completed",
  ],
];

describe("a run", () => {
  it.each(CASES)("%s", (_name, lines, ending, outcome) => {
    expect(play(lines, ending).outcome).toBe(outcome);
  });

  it("reads a line of 50 MB", () => {
    const { facts } = play([init, said("x".repeat(50 * 1024 * 1024)), result()]);
    expect(facts.map(({ fact }) => fact)).toEqual([
      "session",
      "turn_started",
      "said",
      "turn_ended",
    ]);
  });

  it("says nothing of a subagent as its own", () => {
    const sub = line({
      type: "assistant",
      parent_tool_use_id: "t",
      message: { content: [{ type: "text", text: "sub" }] },
    });
    expect(play([init, said("mine"), sub]).state.lastText).toBe("mine");
  });

  it("keeps the name of a type that it does not know", () => {
    expect(newClaudeReader()(line({ type: "system", subtype: "new" }))).toEqual([
      { fact: "unknown", type: "system/new" },
    ]);
  });
});

const TYPES = ["system", "assistant", "user", "result", "command_lifecycle", "rate_limit_event"];
const SUBTYPES = ["init", "status", "api_retry", "background_tasks_changed", "compact_boundary"];
const KEYS = [
  "message",
  "content",
  "rate_limit_info",
  "unifiedWindows",
  "tasks",
  "errors",
  "origin",
];
const rubbish = fc.record(
  {
    type: fc.constantFrom(...TYPES),
    subtype: fc.constantFrom(...SUBTYPES),
    is_error: fc.anything(),
    isReplay: fc.boolean(),
    uuid: fc.string(),
    state: fc.constantFrom("started", "completed", "__proto__"),
    ...Object.fromEntries(KEYS.map((key) => [key, fc.jsonValue()])),
    modelUsage: fc.jsonValue(),
    permission_denials: fc.jsonValue(),
    user_message_uuids: fc.jsonValue(),
    terminal_reason: fc.jsonValue(),
  },
  { requiredKeys: ["type"] },
);

it.each([NOW_MS + 3_600_000, -1, "2026-11-25T00:00:00Z", 1e300])(
  "a limit that ends at %j has no known end",
  (resetsAt) => {
    const event = line({
      type: "rate_limit_event",
      rate_limit_info: { status: "rejected", resetsAt, rateLimitType: "five_hour" },
    });
    const end = error({ api_error: "usage_limit_reached" });
    expect(play([init, event, end], { exitCode: 1 }).outcome).toBe("deferred null");
  },
);

describe("what an open turn has used", () => {
  const used = (id: string, input: number, output: number, parent?: string): string =>
    line({
      type: "assistant",
      message: {
        id,
        content: [],
        usage: { input_tokens: input, cache_read_input_tokens: 5, output_tokens: output },
      },
      parent_tool_use_id: parent ?? null,
    });
  const tokens = (lines: readonly string[]): (readonly [string, number, number])[] => {
    const read = newClaudeReader();
    return lines
      .flatMap(read)
      .flatMap((fact) =>
        fact.fact === "usage"
          ? [[fact.of, fact.usage.inputTokens, fact.usage.outputTokens] as const]
          : [],
      );
  };

  it("counts a message once, however many lines are about it, and subagents", () => {
    const lines = [used("a", 100, 1), used("a", 100, 7), used("b", 10, 2), used("c", 1, 1, "t")];
    expect(tokens(lines)).toEqual([
      ["turn", 105, 1],
      ["turn", 105, 7],
      ["turn", 120, 9],
      ["turn", 126, 10],
    ]);
  });

  it("begins anew after its end", () => {
    expect(tokens([used("a", 100, 1), result(), used("b", 10, 2)])).toEqual([
      ["turn", 105, 1],
      ["turn", 15, 2],
    ]);
  });
});

describe("the reader", () => {
  it("throws at no line", () => {
    const lines = fc.array(
      fc.oneof(
        fc.string(),
        fc.json(),
        rubbish.map((one) => JSON.stringify(one)),
      ),
    );
    fc.assert(
      fc.property(lines, (some) => {
        play(some);
      }),
      { numRuns: 500 },
    );
  });
});
