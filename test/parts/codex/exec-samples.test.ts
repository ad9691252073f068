/** Captured runs of `codex exec --json` (0.169.0): the facts of each, and what it comes to. */
import { describe, expect, it, test } from "vitest";
import { factsOf, kindOf, NOW_MS, play, sampleLines, sampleNames, sampleText } from "./replay.ts";

const exec = (name: string, how = {}) => play({ exec: sampleLines(`${name}.jsonl`), ...how });

/** Sample, exit code, outcome. */
const RUNS: readonly (readonly [string, number | null, string])[] = [
  ["ok", 0, "completed"],
  ["full", 0, "completed"],
  ["resume", 0, "completed"],
  ["read-only", 0, "completed"],
  // Without its rollout file, which tells of the refusal.
  ["escalation-refused", 0, "completed"],
  ["429", 1, "deferred"],
  ["usage-limit", 1, "deferred"],
  ["usage-limit-later", 1, "deferred"],
  ["500", 1, "deferred"],
  ["503", 1, "deferred"],
  ["disconnected", 1, "deferred"],
  ["401", 1, "deferred"],
  ["401-later", 1, "deferred"],
  ["403", 1, "deferred"],
  ["400", 1, "agent"],
  ["unknown-model", 1, "config"],
  ["unknown-model-of-plan", 1, "config"],
  ["billing", 1, "config"],
  ["context-full", 1, "agent"],
  ["INT", 1, "interrupted"],
  ["INT-in-tool", 1, "interrupted"],
  ["TERM-in-tool", null, "interrupted"],
  ["no-network", null, "interrupted"],
];
/** The same for what stands on stderr. */
const WITHOUT_STREAM: readonly (readonly [string, number, string])[] = [
  ["lost-session", 1, "fresh_session"],
  ["wrong-flag", 2, "config"],
  ["wrong-setting", 1, "config"],
  ["unknown-provider", 1, "config"],
  ["untrusted-folder", 1, "config"],
];

it("all samples have an outcome in a table", () => {
  const names = [...RUNS, ...WITHOUT_STREAM].map(([name]) => name);
  expect(names.sort()).toEqual(sampleNames(/^(?!app-server|rollout)/));
});

describe("a captured run comes to", () => {
  test.each(RUNS)("%s, exit %s: %s", (name, exitCode, kind) => {
    expect(kindOf(exec(name, { exitCode }))).toBe(kind);
  });

  it("interrupted, when SIGTERM ends it in a tool call", () => {
    const run = exec("TERM-in-tool", { exitCode: null, signal: "SIGTERM" });
    expect(kindOf(run)).toBe("interrupted");
    expect([...run.state.openTools]).toEqual([["item_2", "command_execution"]]);
  });

  it("failed of kind auth, when the account is not let in for a second time", () => {
    expect(kindOf(exec("401", { exitCode: 1, run: { wasRefused: true } }))).toBe("auth");
    expect(exec("401", { exitCode: 1 }).outcome).toMatchObject({ delayMs: 60_000 });
  });
});

describe("without a stream, by what stands on stderr, it comes to", () => {
  test.each(WITHOUT_STREAM)("%s, exit %i: %s", (name, exitCode, kind) => {
    const stderr = sampleText(`${name}.stderr`);
    expect(kindOf(play({ stderr, exitCode, run: { isResumed: true } }))).toBe(kind);
  });

  it("a failure that another run may mend, when the complaint is of a kind that we do not know", () => {
    const stderr = "Error: cannot write the rollout: no space left on device\n";
    expect(play({ stderr, exitCode: 1 }).outcome).toMatchObject({
      failure: "agent",
      canRetry: true,
    });
    expect(kindOf(play({ stderr: "", exitCode: 1 }))).toBe("interrupted");
  });
});

it("tells the session, the words, the thoughts, the tools and the tokens of a run", () => {
  const run = exec("full");
  expect(run.state.sessionId).toBe("01a1ffd2-f090-7ae1-8e2b-e1e2d350c1bd");
  expect(factsOf(run, "thought")).toEqual([{ fact: "thought", text: "**Planning** the work" }]);
  expect(factsOf(run, "tool_started").map(({ name, input }) => [name, input])).toEqual([
    ["command_execution", "/bin/bash -lc 'echo hello; ls'"],
    ["file_change", "/repo/new.txt"],
    ["command_execution", "/bin/bash -lc 'exit 3'"],
  ]);
  expect(factsOf(run, "tool_ended")).toEqual([
    { fact: "tool_ended", id: "item_3", output: "hello\n", exitCode: 0, isError: false },
    { fact: "tool_ended", id: "item_4", output: "", exitCode: null, isError: false },
    { fact: "tool_ended", id: "item_5", output: "", exitCode: 3, isError: true },
  ]);
  expect(factsOf(run, "file_changed")).toEqual([
    { fact: "file_changed", path: "/repo/new.txt", change: "add" },
  ]);
  expect(run.state.sessionUsage).toEqual({
    inputTokens: 24_000,
    cachedInputTokens: 700,
    outputTokens: 350,
    costUsdMicro: null,
  });
  expect(run.outcome).toMatchObject({ kind: "completed", output: "All done." });
  expect(factsOf(run, "notice")).toHaveLength(2);
  expect(factsOf(run, "unknown")).toEqual([]);
});

it("tells the tokens of the whole thread after a resume: the sum, not what came on top", () => {
  const usage = factsOf(exec("resume"), "usage");
  expect(usage.map(({ of, usage: { inputTokens } }) => [of, inputTokens])).toEqual([
    ["session", 7200],
  ]);
});

it("takes a notice of a retry for no end, and keeps its status", () => {
  const run = exec("429", { exitCode: 1 });
  expect(factsOf(run, "api_retry")).toMatchObject([{ status: 429, delayMs: null }]);
  expect(factsOf(run, "turn_ended")).toHaveLength(1);
});

it("reads no time from prose: a usage limit alone defers without a time", () => {
  expect(exec("usage-limit", { exitCode: 1 }).outcome).toMatchObject({ delayMs: null });
});

it("defers to the time in the rollout file", () => {
  const rollout = sampleLines("rollout-usage-limit.jsonl");
  const run = exec("usage-limit-later", { exitCode: 1, rollout });
  expect(run.outcome).toMatchObject({ kind: "deferred", delayMs: 1_795_561_343_000 - NOW_MS });
  expect([...run.state.refusedWindows.keys()]).toEqual(["5h"]);
});

it.each(["rollout-escalation-refused", "rollout-rule-refused"])(
  "fails for want of permission when the rollout file tells of a refused command: %s",
  (name) => {
    // The stream ends well, and does not mention the command.
    expect(kindOf(exec("escalation-refused"))).toBe("completed");
    const run = exec("escalation-refused", { rollout: sampleLines(`${name}.jsonl`) });
    expect(kindOf(run)).toBe("permission");
    expect(run.outcome).toMatchObject({ canRetry: false });
  },
);

it("shows an answer without the JSON around it", () => {
  expect(exec("400", { exitCode: 1 }).outcome).toMatchObject({ message: "mock bad request" });
});
