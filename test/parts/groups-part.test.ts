/** The groups as a part of a supervisor, beside a part that brings groups of its own. */
import fs from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { Backlog } from "../../src/core/backlog.ts";
import { formatName, type ProcessingName } from "../../src/core/names.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../src/core/settings.ts";
import { stateTree } from "../../src/core/state-tree.ts";
import type { LimitChanges } from "../../src/core/task-limits.ts";
import { laneOf, limitsOf, type WaitingTask, waitingTask } from "../../src/core/waiting-task.ts";
import { newSubmission } from "../../src/mailbox/claim/claim.ts";
import { pathIn } from "../../src/mailbox/files/trays.ts";
import { groups } from "../../src/parts/groups/part.ts";
import { type Environment, openEnvironment } from "../../src/supervisor/environment/environment.ts";
import type { Part } from "../../src/supervisor/environment/part.ts";
import { Parts } from "../../src/supervisor/environment/parts.ts";
import type { PartHost } from "../../src/supervisor/part.ts";
import { tempDir } from "../support/temp-dir.ts";

const SETTINGS: Settings = {
  ...DEFAULT_SETTINGS,
  agents: [{ name: "one", kind: "exec", slots: 1 }],
  groups: { "land-ours": { slots: 2 }, gpu: { slots: 4, limits: ["cuda"] }, open: {} },
  limits: { cuda: 2, api: { rate: "10/s", burst: 2 } },
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
  let changes: LimitChanges;
  let backlog: Backlog;

  function open(settings: Settings): void {
    const tree = stateTree(tempDir());
    fs.mkdirSync(join(tree.dir, "mailbox", "processing"), { recursive: true });
    env = openEnvironment({ tree, settings }, () => {});
    parts = new Parts();
    const control = {
      get current() {
        return { limit_changes: changes };
      },
    };
    backlog = new Backlog();
    const host = { env, control, commands: new Map(), queue: { backlog } };
    parts.add(groups({ ...host, limits: { parts } } as unknown as PartHost));
    parts.add(LANDINGS);
  }
  const list = (): void =>
    void env.facts.emit("processing:listed", env.trays.storage.list(env.trays.processing));
  const putInWork = (id: string, task: object): ProcessingName => {
    const name = newSubmission(env.trays.clock, id, 1);
    fs.writeFileSync(pathIn(env.trays.processing, formatName(name)), JSON.stringify(task));
    return name;
  };

  const tick = (): void => parts.work({ nowMs: env.trays.clock.monotonicMs(), dueMs: 0 });
  const gates = (): string[] => parts.gates.map(({ why }) => why);
  const laneWith = (task: object): string =>
    laneOf({ agentId: "exec", ...limitsOf(task as Parameters<typeof limitsOf>[0]) });
  let added = 0;
  const wait = (task: object): WaitingTask => {
    const id = `w${added++}`;
    const place = {
      id,
      file: `${id}.json`,
      tray: "inbox",
      attempt: 1,
      mtimeMs: 1,
      ctimeMs: added,
    } as const;
    const waiting = waitingTask({ id, exec: ["true"], ...task }, place, [], () => true);
    backlog.add(waiting, 0, 0);
    return waiting;
  };

  beforeEach(() => {
    changes = {};
    open(SETTINGS);
  });

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
    expect(gates()).toEqual(["group land-a: 1 of 1 running", "agent one: 1 of 1 running"]);
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

  it("share a limit, whether the task names it or its group does", () => {
    list();
    parts.noteStart(laneWith({ group: "gpu" }), "a");
    parts.noteStart(laneWith({ limits: ["cuda"] }), "b");
    for (const task of [
      { group: "gpu" },
      { limits: ["cuda"] },
      { group: "open", limits: ["cuda"] },
    ])
      expect(parts.mayStart(laneWith(task)), JSON.stringify(task)).toBe(false);
    for (const task of [{ group: "open" }, { limits: ["api"] }, {}])
      expect(parts.mayStart(laneWith(task)), JSON.stringify(task)).toBe(true);
    expect(gates()).toEqual(["limit cuda: 2 of 2 running"]);
    env.facts.emit("task:settled", "b", true, undefined);
    expect(parts.mayStart(laneWith({ group: "gpu" }))).toBe(true);
  });

  it("take a heavy task for as many slots as it weighs, and for all when it weighs more", () => {
    list();
    const heavy = laneWith({ group: "land-ours", weight: 9 });
    expect(parts.mayStart(heavy)).toBe(true);
    parts.noteStart(heavy, "a");
    expect(parts.mayStart(lane("land-ours"))).toBe(false);
    env.facts.emit("task:settled", "a", true, undefined);
    parts.noteStart(lane("land-ours"), "b");
    expect(parts.mayStart(heavy)).toBe(false);
    expect(parts.mayStart(lane("land-ours"))).toBe(true);
  });

  it("let no light task pass a heavy one that comes first and does not fit yet; other groups go on", () => {
    list();
    parts.noteStart(laneWith({ group: "land-ours" }), "a");
    wait({ group: "land-ours", weight: 2, priority: 1 });
    wait({ group: "land-ours" });
    tick();
    expect(parts.mayStart(lane("land-ours"))).toBe(false);
    expect(parts.mayStart(lane("gpu"))).toBe(true);
    env.facts.emit("task:settled", "a", true, undefined);
    tick();
    expect(backlog.takeBest("all", parts.mayStart)?.priority).toBe(1);
    tick();
    expect(parts.mayStart(lane("land-ours"))).toBe(true);
  });

  it("wait for no heavy task that something else holds back", () => {
    list();
    parts.noteStart(laneWith({ group: "gpu" }), "a");
    parts.noteStart(laneWith({ limits: ["cuda"] }), "b");
    open({ ...SETTINGS, groups: { ...SETTINGS.groups, gpu: { slots: 2 } } });
    list();
    parts.noteStart(laneWith({ limits: ["cuda"] }), "c");
    parts.noteStart(laneWith({ limits: ["cuda"], group: "gpu" }), "d");
    wait({ group: "gpu", weight: 2, limits: ["cuda"], priority: 1 });
    tick();
    expect(parts.mayStart(lane("gpu"))).toBe(true);
  });

  it("change by a command at once: more slots, fewer, a pause", () => {
    list();
    parts.noteStart(lane("gpu"), "a");
    changes = { "group:gpu": { slots: 1 } };
    tick();
    expect(parts.mayStart(lane("gpu"))).toBe(false);
    expect(gates()).toContain("group gpu: 1 of 1 running");
    changes = { "group:gpu": { paused: true }, "group:open": { paused: true } };
    tick();
    expect(parts.mayStart(lane("gpu"))).toBe(false);
    expect(parts.mayStart(lane("open"))).toBe(false);
    expect(parts.whyClosed(lane("open"))).toContain("mailchute group resume open");
    expect(gates()).toContain("group gpu is paused: mailchute group resume gpu");
    changes = {};
    tick();
    expect(parts.mayStart(lane("gpu"))).toBe(true);
  });

  it("allow by a rate as many starts as its burst, then say when the next one is", () => {
    list();
    const rated = laneWith({ limits: ["api"] });
    // A new rate allows one start.
    expect(parts.mayStart(rated)).toBe(true);
    parts.noteStart(rated, "a");
    expect(parts.mayStart(rated)).toBe(false);
    const leftMs = parts.nextMs(0) - env.trays.clock.monotonicMs();
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(100);
    tick();
    expect(gates()[0]).toMatch(/^limit api: its rate of 10\/s is used up, the next start is at /);
    changes = { "limit:api": { rate: "1000/s" } };
    tick();
    expect(parts.nextMs(0)).toBe(Number.POSITIVE_INFINITY);
  });

  it("say that they count a start, so that the next one of its lane is asked about", () => {
    list();
    expect(parts.noteStart(lane("land-a"), "a")).toBe(true);
    expect(parts.mayStart(lane("land-a"))).toBe(false);
    const settled = laneOf({ agentId: "exec", tray: "processing" });
    expect(parts.noteStart(settled, "b")).toBe(false);
    expect(parts.mayStart(settled)).toBe(true);
  });

  it("hold a task whose limit nothing defines, also without any settings", () => {
    open({ ...DEFAULT_SETTINGS });
    const unknown = laneWith({ limits: ["gpuu"] });
    expect(parts.mayStart(unknown)).toBe(false);
    expect(parts.mayStart(lane(undefined))).toBe(true);
    expect(parts.whyClosed(unknown)).toContain("limit gpuu is not in config.yaml");
    expect(gates()[0]).toContain("limit gpuu is not in config.yaml");
  });
});
