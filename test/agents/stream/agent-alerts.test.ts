/** What a person is told when an agent fails, is stopped by a watchdog, or is paused because it fails again and again. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AgentAlerts } from "../../../src/agents/stream/agent-alerts.ts";
import { type AttemptOutcome, failed } from "../../../src/core/outcome.ts";
import { tempDir } from "../../support/temp-dir.ts";

const IDLE = failed("timeout", "ErrIdle", "it was silent for too long");
const LIMIT = failed("timeout", "ErrTimeout", "it ran longer than its limit of 10 ms");
const BROKEN = failed("agent", "ErrAgentFailed", "API Error: 400");
const REFUSED = failed("auth", "ErrAuth", "the account is not let in", { canRetry: false });
const DONE: AttemptOutcome = {
  kind: "completed",
  output: "",
  verdict: "unknown",
  verdictReason: "",
  exitCode: 0,
};

/** Alerts after these runs, in order: task and outcome. */
async function alertsOf(
  ...runs: readonly (readonly [string, AttemptOutcome])[]
): Promise<string[]> {
  const stateDir = tempDir();
  fs.mkdirSync(join(stateDir, "analytics"));
  const alerts = new AgentAlerts({ name: "coder", kind: "claude" });
  for (const [task, outcome] of runs) await alerts.note(stateDir, task, outcome);
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
  it("name the setting when it was stopped for its silence, and for its time, once each", async () => {
    const told = await alertsOf(["a", IDLE], ["b", LIMIT], ["c", IDLE], ["d", LIMIT]);
    expect(told).toEqual([
      expect.stringMatching(/^agent_timeout: agent coder: .*raise idle_ms of coder/),
      expect.stringMatching(/^agent_timeout: agent coder: .*raise timeout_ms/),
    ]);
  });

  it("say once that the agent is paused, with what to do and what lets it go on", async () => {
    const five = ["a", "b", "c", "d", "e"].map((task) => [task, BROKEN] as const);
    expect(await alertsOf(...five.slice(1))).toEqual([]);
    expect(await alertsOf(...five, ["f", BROKEN])).toEqual([
      expect.stringMatching(
        /^agent_paused: agent coder is paused since .*: 5 runs in a row failed in the same way, the last of e: API Error: 400; see `mailchute logs e`; .*resume --agent coder/,
      ),
    ]);
    expect(await alertsOf(...five.slice(1), ["x", DONE], ...five.slice(1))).toEqual([]);
    expect(await alertsOf(["a", REFUSED])).toEqual([
      expect.stringMatching(/^agent_paused: .*a run of a failed: .*log in again with claude/),
    ]);
  });

  it.each([
    ["cancelled", "ErrCancelled"],
    ["budget", "ErrBudget"],
  ] as const)("do not count what a person has decided: %s", async (kind, code) => {
    const decided = failed(kind, code, "no", { canRetry: false });
    const four = ["a", "b", "c", "d"].map((task) => [task, BROKEN] as const);
    expect(await alertsOf(...Array.from({ length: 6 }, () => ["x", decided] as const))).toEqual([]);
    expect(await alertsOf(...four, ["x", decided])).toEqual([]);
    // It has not shown either that the agent works.
    expect(await alertsOf(...four, ["x", decided], ["e", BROKEN])).toHaveLength(1);
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
