/** What a person is told when an agent fails, is stopped by a watchdog, or fails in the same way again and again. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AgentAlerts } from "../../../src/agents/stream/agent-alerts.ts";
import { FailureStreaks } from "../../../src/agents/stream/failure-streaks.ts";
import { type AttemptOutcome, failed } from "../../../src/core/outcome.ts";
import { tempDir } from "../../support/temp-dir.ts";

const IDLE = failed("timeout", "ErrIdle", "it was silent for too long");
const LIMIT = failed("timeout", "ErrTimeout", "it ran longer than its limit of 10 ms");
const BROKEN = failed("agent", "ErrAgentFailed", "API Error: 400");
const DONE: AttemptOutcome = {
  kind: "completed",
  output: "",
  verdict: "unknown",
  verdictReason: "",
  exitCode: 0,
};
const PUT_OFF: AttemptOutcome = { kind: "deferred", message: "later", delayMs: 1 };

/** Alerts after these runs, in order: task and outcome. */
function alertsOf(...runs: readonly (readonly [string, AttemptOutcome])[]): string[] {
  const stateDir = tempDir();
  fs.mkdirSync(join(stateDir, "analytics"));
  const alerts = new AgentAlerts({ name: "coder", kind: "claude" });
  for (const [task, outcome] of runs) alerts.note(stateDir, task, outcome);
  return read(stateDir);
}

function read(stateDir: string): string[] {
  const path = join(stateDir, "analytics", "alerts.jsonl");
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, "utf8").trim().split("\n");
  return lines.map((line) => {
    const { alert, message } = JSON.parse(line) as { alert: string; message: string };
    return `${alert}: ${message}`;
  });
}

describe("alerts of an agent", () => {
  it("name the setting when it was stopped for its silence, and for its time, once each", () => {
    const told = alertsOf(["a", IDLE], ["b", LIMIT], ["c", IDLE], ["d", LIMIT]);
    expect(told).toEqual([
      expect.stringMatching(/^agent_timeout: agent coder: .*raise idle_ms of coder/),
      expect.stringMatching(/^agent_timeout: agent coder: .*raise timeout_ms/),
    ]);
  });

  it("say that five runs in a row failed in the same way", () => {
    const five = ["a", "b", "c", "d", "e"].map((task) => [task, BROKEN] as const);
    expect(alertsOf(...five.slice(1))).toEqual([]);
    expect(alertsOf(...five, ["f", BROKEN])).toEqual([
      expect.stringMatching(/^same_failure: agent coder: 5 runs in a row.*mailchute pause/),
    ]);
    expect(alertsOf(...five.slice(1), ["x", DONE], ...five.slice(1))).toEqual([]);
  });

  it("say that a task failed three times in the same way, whatever came in between", () => {
    const told = alertsOf(
      ["a", BROKEN],
      ["a", PUT_OFF],
      ["b", DONE],
      ["a", BROKEN],
      ["b", DONE],
      ["a", BROKEN],
    );
    expect(told).toEqual([
      expect.stringMatching(/^same_failure: task a: 3 runs in a row.*mailchute cancel a/),
    ]);
  });

  it("say once that the program does not exit after its work", () => {
    const stateDir = tempDir();
    fs.mkdirSync(join(stateDir, "analytics"));
    const alerts = new AgentAlerts({ name: "coder", kind: "claude" });
    alerts.noteLingering(stateDir, "a");
    alerts.noteLingering(stateDir, "b");
    expect(read(stateDir)).toEqual([expect.stringMatching(/^agent_lingering: .*Update claude/)]);
  });
});

it("a streak ends with a success or another failure, and old ones are forgotten", () => {
  const streaks = new FailureStreaks();
  expect([1, 2].map(() => streaks.note("a", "x"))).toEqual([1, 2]);
  expect(streaks.note("a", "y")).toBe(1);
  expect(streaks.note("a", undefined)).toBe(0);
  expect(streaks.note("a", "y")).toBe(1);
  for (let n = 0; n < 1000; n++) streaks.note(`other ${n}`, "x");
  expect(streaks.note("a", "y")).toBe(1);
});
