/** A worker puts the task of a remote agent where the bridge finds it. */
import { expect, test } from "vitest";
import type { Assignment } from "../../../src/agents/agent.ts";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { remote } from "../../../src/parts/cluster/kind.ts";

const runOf = (settings: Partial<AgentSettings>, assignment: Partial<Assignment> = {}) =>
  remote.make({ name: "far", kind: "remote", ...settings }).run(assignment as Assignment);

test.each([
  [{}, "cluster-any"],
  [{ where: "gpu" }, "cluster-gpu"],
])("an agent with %j holds its task at %s", async (settings, hold) => {
  expect(await runOf(settings)).toMatchObject({ kind: "deferred", delayMs: null, hold });
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
