/** The file that counts the failures of an agent, over all processes that run its tasks. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { BreakerFile, pausedAgents, pausedHold } from "../../../src/agents/breaker/breaker-file.ts";
import { type Failed, failed } from "../../../src/core/outcome.ts";
import { tempDir } from "../../support/temp-dir.ts";

const BROKEN = failed("agent", "ErrAgentFailed", "API Error: 400");
const OTHER = failed("timeout", "ErrIdle", "silent");
const REQUEST = failed("agent", "ErrAgentRequest", "the prompt is too long");
const CONFIG = failed("config", "ErrAgentConfig", "no such model");
const AUTH = failed("auth", "ErrAuth", "not let in");

/** Each run is noted by a process of its own. @returns which of them paused the agent, by their number from 1 */
async function pausesOf(stateDir: string, ...runs: (Failed | undefined)[]): Promise<number[]> {
  const pauses: number[] = [];
  for (const [index, run] of runs.entries()) {
    const caused = await new BreakerFile(stateDir, "coder").note(`t${index + 1}`, run);
    if (caused !== undefined) pauses.push(index + 1);
  }
  return pauses;
}

it.each([
  ["five in a row that are alike", [BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, BROKEN], [5]],
  ["five with a success between", [BROKEN, BROKEN, BROKEN, undefined, BROKEN, BROKEN], []],
  ["five with another failure between", [BROKEN, BROKEN, OTHER, BROKEN, BROKEN, BROKEN], []],
  ["one that no other run mends", [BROKEN, AUTH], [2]],
  ["a wrong setting", [CONFIG], [1]],
  ["five requests that are refused", [REQUEST, REQUEST, REQUEST, REQUEST, REQUEST], [5]],
  ["a success", [undefined], []],
])("an agent is paused by %s: %j", async (_what, runs, expected) => {
  const stateDir = tempDir();
  expect(await pausesOf(stateDir, ...runs)).toEqual(expected);
  expect(pausedAgents(stateDir).map(({ agent }) => agent)).toEqual(expected.map(() => "coder"));
});

it("a success of a run that was on leaves the pause, and resume takes it away with its count", async () => {
  const stateDir = tempDir();
  expect(await pausesOf(stateDir, AUTH, undefined)).toEqual([1]);
  const breaker = new BreakerFile(stateDir, "coder");
  expect(breaker.paused()).toMatchObject({ task_id: "t1", message: "not let in", count: 1 });
  expect(breaker.resume()).toMatchObject({ agent: "coder" });
  expect(breaker.resume()).toBeUndefined();
  expect(await pausesOf(stateDir, BROKEN, BROKEN, BROKEN, BROKEN)).toEqual([]);
});

it("runs that end at once are all counted", async () => {
  const stateDir = tempDir();
  const caused = await Promise.all(
    Array.from({ length: 8 }, (_, n) => new BreakerFile(stateDir, "coder").note(`t${n}`, BROKEN)),
  );
  expect(caused.filter((one) => one !== undefined)).toMatchObject([{ count: 5 }]);
});

it.each(["{", "[]", '{"v": 1, "agent": 1, "count": 9, "paused_at": "x"}', '{"v": 2}'])(
  "a file that holds %s is no pause",
  async (text) => {
    const stateDir = tempDir();
    await pausesOf(stateDir, AUTH);
    fs.writeFileSync(join(stateDir, "breakers", "coder.json"), text);
    expect(pausedAgents(stateDir)).toEqual([]);
    expect(new BreakerFile(stateDir, "coder").paused()).toBeUndefined();
  },
);

it("an agent may have any name", async () => {
  const stateDir = tempDir();
  const name = "../my agent?";
  await new BreakerFile(stateDir, name).note("t", AUTH);
  expect(pausedAgents(stateDir).map(({ agent }) => agent)).toEqual([name]);
  expect(pausedHold(name)).toMatch(/^paused-[a-z0-9]+$/);
});
