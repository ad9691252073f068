/** Lines that no app-server should print, and numbers that no rollout file should hold: what the run comes to. */
import { describe, expect, it, test } from "vitest";
import { factsOf, kindOf, NOW_MS, play } from "./replay.ts";

const line = (value: unknown): string => JSON.stringify(value);
const tell = (method: string, params: unknown): string => line({ method, params });
const turn = (what: string, id: unknown, more: object = {}): string =>
  tell(`turn/${what}`, { threadId: "t", turn: { id, ...more } });
const item = (what: string, members: unknown): string =>
  tell(`item/${what}`, { threadId: "t", item: members });
const used = (inputTokens: unknown, outputTokens: unknown = 30): string =>
  tell("thread/tokenUsage/updated", {
    threadId: "t",
    tokenUsage: { total: { inputTokens, outputTokens } },
  });

const THREAD = line({ id: 2, result: { thread: { id: "t" }, model: "m" } });
const BEGIN = [line({ id: 1, result: {} }), THREAD, turn("started", "u")];
const SAID = item("completed", { id: "i", type: "agentMessage", text: "Done." });
const END = turn("completed", "u", { status: "completed" });
const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;

describe("an app-server that prints", () => {
  test.each<[string, string[], string]>([
    ["methods that nobody knows", [...BEGIN, tell("thread/dreams", { turn: 1 }), END], "completed"],
    ["params that are a list", [...BEGIN, tell("item/started", []), END], "completed"],
    ["params that are a text", [...BEGIN, tell("item/completed", "text"), END], "completed"],
    ["no params", [...BEGIN, line({ method: "turn/plan" }), END], "completed"],
    [
      "items that are none",
      [...BEGIN, item("started", 7), item("completed", null), END],
      "completed",
    ],
    [
      "members of the wrong type",
      [...BEGIN, item("started", { id: 7, type: ["x"] }), END],
      "completed",
    ],
    [
      "an item without an id",
      [...BEGIN, item("started", { type: "commandExecution" }), END],
      "completed",
    ],
    [
      "the end of a call before the call",
      [
        ...BEGIN,
        item("completed", { id: "c", type: "commandExecution", status: "completed" }),
        END,
      ],
      "completed",
    ],
    ["its end twice", [...BEGIN, SAID, END, END], "completed"],
    [
      "the end of an earlier turn",
      [...BEGIN, turn("completed", "old", { status: "completed" })],
      "interrupted",
    ],
    [
      "the failure of an earlier turn",
      [...BEGIN, turn("completed", "old", { status: "failed" }), END],
      "completed",
    ],
    ["its end before its beginning", [THREAD, END, turn("started", "u")], "interrupted"],
    [
      "an end of an unknown status",
      [...BEGIN, turn("completed", "u", { status: "paused" })],
      "agent",
    ],
    ["an end without a status", [...BEGIN, turn("completed", "u")], "agent"],
    ["an end without a turn", [...BEGIN, tell("turn/completed", { threadId: "t" })], "agent"],
    [
      "a failure whose error is a text",
      [...BEGIN, turn("completed", "u", { status: "failed", error: "no" })],
      "agent",
    ],
    ["half of its last line", [...BEGIN, SAID, END.slice(0, -9)], "interrupted"],
    ["two objects on a line", [...BEGIN, SAID + END], "interrupted"],
    ["values that are no objects", ["[1]", "7", '"x"', "null", ...BEGIN, "[{}]", END], "completed"],
    ["nothing but such values", ["[1]", "null"], "interrupted"],
    ["NUL bytes", ["\0", ...BEGIN, "\0\0", END], "completed"],
    ["lines as on Windows", [...BEGIN, SAID, END].map((one) => `${one}\r`), "completed"],
    [
      "a line that nests 100,000 levels deep",
      [
        ...BEGIN,
        `{"method":"item/started","params":{"threadId":"t","item":{"type":"mcpToolCall","id":"d","arguments":${nested}}}}`,
        END,
      ],
      "completed",
    ],
    [
      "two compactions",
      [...BEGIN, tell("thread/compacted", {}), tell("thread/compacted", {}), END],
      "completed",
    ],
    [
      "answers that nobody waits for",
      [...BEGIN, line({ id: 99, result: "x" }), line({ id: "a", error: 7 }), END],
      "completed",
    ],
    [
      "names that objects have by themselves",
      [...BEGIN, tell("__proto__", {}), tell("toString", { threadId: "constructor" }), END],
      "completed",
    ],
    [
      "10,000 short lines",
      [...BEGIN, ...Array.from({ length: 10_000 }, () => "{}"), END],
      "completed",
    ],
  ])("%s", (_, appServer, kind) => {
    expect(kindOf(play({ appServer }))).toBe(kind);
  });

  it.each([
    [-5, -1, []],
    [1e300, 1e300, []],
    ["1000", "30", []],
    [999.6, 30, [1000]],
  ])("%j tokens in and %j out", (input, output, counts) => {
    const sums = factsOf(play({ appServer: [...BEGIN, used(input, output), END] }), "usage");
    expect(sums.map(({ usage }) => usage.inputTokens)).toEqual(counts);
  });

  it("another thread stays in its own", () => {
    const other = line({ id: 3, result: { thread: { id: "other" }, model: "m" } });
    const run = play({ appServer: [...BEGIN, other, END] });
    expect(run.state.sessionId).toBe("t");
    expect(kindOf(run)).toBe("completed");
  });

  it.each(["", "--last", "a b", "a\0b", "a".repeat(300), 7])(
    "a thread that is named %j has no session that could be resumed",
    (id) => {
      const thread = line({ id: 2, result: { thread: { id }, model: "m" } });
      expect(play({ appServer: [thread] }).state.sessionId).toBeUndefined();
    },
  );
});

it.each([
  // In milliseconds, before 1970, as a text, beyond all times.
  NOW_MS + 3_600_000,
  -1,
  "2026-11-25T00:00:00Z",
  1e300,
])("a limit that ends at %j has no known end", (resets_at) => {
  const payload = {
    type: "token_count",
    rate_limits: { primary: { used_percent: 100, resets_at } },
  };
  const failed = line({ type: "turn.failed", error: { message: "You've hit your usage limit." } });
  const exec = [line({ type: "turn.started" }), failed];
  const run = play({ exec, rollout: [line({ type: "event_msg", payload })], exitCode: 1 });
  expect(run.outcome).toMatchObject({ kind: "deferred", delayMs: null });
});
