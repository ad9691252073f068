/** The groups as a part of a supervisor, beside a part that brings groups of its own. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { formatName, type ProcessingName } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import { laneOf } from "../../src/core/waiting-task.ts";
import { newSubmission } from "../../src/mailbox/claim.ts";
import { pathIn } from "../../src/mailbox/trays.ts";
import { groups } from "../../src/parts/groups/part.ts";
import { type Environment, openEnvironment } from "../../src/supervisor/environment/environment.ts";
import type { Part } from "../../src/supervisor/environment/part.ts";
import { Parts } from "../../src/supervisor/environment/parts.ts";
import type { PartHost } from "../../src/supervisor/part.ts";
import { tempDir } from "../support/temp-dir.ts";

const SETTINGS: Settings = {
  ...DEFAULT_SETTINGS,
  agents: [{ name: "one", kind: "exec", slots: 1 }],
  groups: { "land-ours": { slots: 2 } },
};
const LANDINGS: Part = {
  ports: {
    groups: {
      hasGroups: true,
      slotsOf: (group) => (group.startsWith("land-") ? 1 : undefined),
    },
  },
  start: async () => {},
  work: () => {},
  nextMs: () => Number.POSITIVE_INFINITY,
  finish: async () => {},
  close: () => {},
};

const lane = (group: string | undefined, agentId = "exec"): string =>
  laneOf(group === undefined ? { agentId } : { agentId, group });

describe("groups", () => {
  let env: Environment;
  let parts: Parts;

  function open(settings: Settings): void {
    const tree = stateTree(tempDir());
    fs.mkdirSync(join(tree.dir, "mailbox", "processing"), { recursive: true });
    env = openEnvironment({ tree, settings }, () => {});
    parts = new Parts();
    parts.add(groups({ env, limits: { groups: parts } } as unknown as PartHost));
    parts.add(LANDINGS);
  }
  const list = (): void =>
    void env.facts.emit("processing:listed", env.trays.storage.list(env.trays.processing));
  const putInWork = (id: string, task: object): ProcessingName => {
    const name = newSubmission(env.trays.clock, id, 1);
    fs.writeFileSync(pathIn(env.trays.processing, formatName(name)), JSON.stringify(task));
    return name;
  };

  beforeEach(() => open(SETTINGS));

  it("start no task of a group before it is known what runs; others start", () => {
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    expect(parts.mayStart(lane(undefined))).toBe(true);
    expect(parts.mayStart(lane("label"))).toBe(true);
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(true);
  });

  it("that a part brings have its number of slots, unless the settings name them", () => {
    list();
    for (const group of ["land-a", "land-ours"]) parts.noteStart(lane(group), group);
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    expect(parts.mayStart(lane("land-b"))).toBe(true);
    expect(parts.mayStart(lane("land-ours"))).toBe(true);
    env.facts.emit("task:settled", "LAND-A", true, undefined);
    expect(parts.mayStart(lane("land-a"))).toBe(true);
  });

  it("and agents are limited both for a task that has both", () => {
    list();
    parts.noteStart(lane("land-a", "one"), "both");
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    expect(parts.mayStart(lane("land-b", "one"))).toBe(false);
    expect(parts.mayStart(lane("land-b"))).toBe(true);
    const gates = parts.statuses.flatMap((status) => status.report().gates ?? []);
    expect(gates.map(({ why }) => why)).toEqual([
      "group land-a: 1 of 1 running",
      "agent one: 1 of 1 running",
    ]);
  });

  it("count what an earlier supervisor left in work, until two listings do not show it", () => {
    const name = putInWork("old", { exec: ["true"], group: "land-a" });
    putInWork("old-line", { agent: "one", payload: 1 });
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    expect(parts.mayStart(lane(undefined, "one"))).toBe(false);
    // It waits for its next run, and has its place.
    expect(parts.mayStart(laneOf({ agentId: "exec", group: "land-a", tray: "processing" }))).toBe(
      true,
    );
    fs.unlinkSync(pathIn(env.trays.processing, formatName(name)));
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(true);
    expect(parts.mayStart(lane(undefined, "one"))).toBe(false);
  });

  it("give the place back while a task is held at a gate", () => {
    const name = putInWork("held", { exec: ["true"], group: "land-a" });
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    const { processing } = env.trays;
    const held = formatName({ ...name, stage: "hold", token: "quota-x" });
    fs.renameSync(pathIn(processing, formatName(name)), pathIn(processing, held));
    list();
    list();
    expect(parts.mayStart(lane("land-a"))).toBe(true);
    const gate = laneOf({ agentId: "exec", group: "land-a", gate: "quota-x", tray: "processing" });
    parts.noteStart(gate, "held");
    expect(parts.mayStart(lane("land-a"))).toBe(false);
  });

  it("tell people nothing new while none is full", () => {
    list();
    const [status] = parts.statuses;
    const before = status?.version;
    parts.noteStart(lane("land-ours"), "a");
    for (let n = 0; n < 5; n++) parts.noteStart(lane(undefined), `plain-${n}`);
    expect(status?.version).toBe(before);
    parts.noteStart(lane("land-ours"), "b");
    expect(status?.version).not.toBe(before);
  });
});
