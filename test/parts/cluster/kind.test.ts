/** A worker puts the task of a remote agent where the bridge finds it. */
import { expect, test } from "vitest";
import type { Assignment } from "../../../src/agents/agent.ts";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { remote } from "../../../src/parts/cluster/kind.ts";
import { groupsAbroad } from "../../../src/parts/cluster/runner.ts";
import type { AssignedAgent, Attempt, AttemptTools, RunHooks } from "../../../src/worker/runner.ts";

const runOf = (settings: Partial<AgentSettings>, assignment: Partial<Assignment> = {}) =>
  remote.make({ name: "far", kind: "remote", ...settings }).run(assignment as Assignment);

test.each([
  [{}, "cluster-any"],
  [{ where: "gpu" }, "cluster-gpu"],
])("an agent with %j holds its task at %s", async (settings, hold) => {
  expect(await runOf(settings)).toMatchObject({ kind: "deferred", delayMs: null, hold });
});

test.each([
  ["render", undefined, "cluster-gpu"],
  ["render", { name: "far", kind: "remote", where: "cpu" }, "cluster-cpu"],
  ["render", { name: "near", kind: "exec" }, "cluster-gpu"],
  ["other", undefined, undefined],
  ["__proto__", undefined, undefined],
  [undefined, undefined, undefined],
])("a worker holds a task of group %j and agent %j at %s", async (group, settings, hold) => {
  const cluster = { groups: { render: "gpu" } };
  const runner = groupsAbroad({ settings: { cluster } } as unknown as AttemptTools);
  const attempt = { decoded: { task: { id: "t", group } } } as unknown as Attempt;
  expect(runner.fits(attempt)).toBe(hold !== undefined);
  if (hold === undefined) return;
  const assigned = settings && ({ agent: { settings } } as unknown as AssignedAgent);
  expect(await runner.run(attempt, {} as RunHooks, assigned)).toMatchObject({ hold });
});

test("a node of the plan is refused, and not run again", async () => {
  const node = { phase: "execute", packetFile: "p", stdoutFrom: 0 };
  expect(await runOf({}, { node })).toMatchObject({
    kind: "failed",
    failure: "invalid",
    code: "ErrRefused",
    canRetry: false,
  });
});
