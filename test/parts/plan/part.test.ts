/** The plan as a part of a supervisor. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { Backlog } from "../../../src/core/backlog.ts";
import { RECOVER_MS } from "../../../src/core/limits.ts";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { plan } from "../../../src/parts/plan/part.ts";
import { openEnvironment } from "../../../src/supervisor/environment/environment.ts";
import type { Part } from "../../../src/supervisor/environment/part.ts";
import type { PartHost } from "../../../src/supervisor/part.ts";
import { AcceptedTasks } from "../../../src/supervisor/queue/accepted-tasks.ts";
import { tempDir } from "../../support/temp-dir.ts";

it.each([
  ["a plan in force is looked at as often as silence is measured", "nodes: []\n", RECOVER_MS],
  ["without a plan it wakes nothing by itself", undefined, Number.POSITIVE_INFINITY],
])("%s", async (_, text, pauseMs) => {
  const tree = stateTree(tempDir());
  if (text !== undefined) fs.writeFileSync(tree.roadmap, text);
  const env = openEnvironment({ tree, settings: DEFAULT_SETTINGS }, () => {});
  const host = {
    env,
    journal: { readAll: () => {} },
    control: { current: {} },
    queue: { backlog: new Backlog(), accepted: new AcceptedTasks() },
    limits: { allowance: () => undefined },
    commands: new Map(),
  } as unknown as PartHost;
  const part = plan(host) as Required<Part>;
  await part.start(false);
  expect(part.nextMs(1_000_000) - 1_000_000).toBe(pauseMs);
  await part.finish(1000);
  expect([...host.commands.keys()]).toEqual(["replan"]);
});
