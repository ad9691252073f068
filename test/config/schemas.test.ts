/** The schemas of the files that people write: they take what the readers take, and refuse what a schema can know to be wrong. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { parse } from "yaml";
import { SAMPLE_CONFIG, SAMPLE_ROADMAP } from "../../src/cli/text/samples.ts";
import { type TSchema, Value } from "../../src/codec/typebox.ts";
import { decodeConfig } from "../../src/config/config-file.ts";
import { SCHEMAS, type SchemaName, schemaDocument } from "../../src/config/schemas.ts";
import { parseRoadmap } from "../../src/parts/plan/read/document.ts";
import { readSchedule } from "../../src/parts/schedules/schedule.ts";
import { planText } from "../parts/plan/plan-text.ts";
import { newPool } from "../support/pool.ts";

const schemas = Object.fromEntries(
  await Promise.all(
    (Object.keys(SCHEMAS) as SchemaName[]).map(async (name) => [name, await schemaDocument(name)]),
  ),
) as unknown as Record<SchemaName, TSchema>;

const plainOf = (text: string): unknown => parse(text, { merge: true, logLevel: "silent" }) ?? {};

function faultOf(name: SchemaName, text: string): string | undefined {
  const first = Value.Errors(schemas[name], plainOf(text)).First();
  return first === undefined ? undefined : `${first.path}: ${first.message}`;
}

function takesSchedule(text: string): boolean {
  try {
    readSchedule("one", text, "one.yaml", "UTC");
    return true;
  } catch {
    return false;
  }
}

/** Blocks of YAML in a document. */
function examples(doc: string, begins: RegExp): string[] {
  const path = fileURLToPath(new URL(`../../docs/${doc}`, import.meta.url));
  const blocks = fs.readFileSync(path, "utf8").matchAll(/```yaml\n([\s\S]*?)```/g);
  return [...blocks].map(([, text = ""]) => text).filter((text) => begins.test(text));
}

const FULL = `
name: night
budget: {soft_usd: 20}
mine: anything
epics:
  - id: e
    type: epic
    tasks: [{id: t0, exec: [true]}]
    milestones:
      - {id: m, title: 7, tasks: [{id: t1, status: pending, priority: high, exec: [make, 1]}]}
nodes:
  - {id: p, type: plan, goal: Ship it, agent: coder, acceptance: one, title: }
  - id: n
    parent: p
    dependencies: [t1, {id: e, required_status: terminal}]
    depends_on: m
    retry_policy: {max_attempts: 3, mine: 1}
    inputs: ["t1:out", {nodeId: t1, key: out, as: it}]
    verify: [[npm, test], "npm run lint"]
    expect_files: a.txt
    capabilities: [typescript]
    env: {A: 1, B: }
    timeout_ms: 1000
    payload: {a: [1]}
    budget: {turns: 5}
    mine: anything
`;

describe("the plan", () => {
  it.each([SAMPLE_ROADMAP, FULL, "", ...examples("plan.md", /^(?:epics|nodes):/m)])(
    "takes %#",
    (text) => {
      expect(parseRoadmap(text).problems).toEqual([]);
      expect(faultOf("roadmap", text)).toBeUndefined();
    },
  );

  test("takes every generated plan", () => {
    fc.assert(
      fc.property(planText, ({ text }) => {
        fc.pre(parseRoadmap(text).problems.length === 0);
        expect(faultOf("roadmap", text)).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });

  it.each([
    "- a",
    "nodes: 5",
    "nodes: [a]",
    "nodes: [{title: no id}]",
    "nodes: [{id: a, status: ready}]",
    "nodes: [{id: a, priority: urgent}]",
    "nodes: [{id: a, type: chore}]",
    "nodes: [{id: a, max_attempts: 0}]",
    "nodes: [{id: a, timeout_ms: soon}]",
    "nodes: [{id: a, exec: make}]",
    "nodes: [{id: a, exec: []}]",
    "nodes: [{id: a, title: [x]}]",
    "nodes: [{id: a, dependencies: [{id: b, required_status: failed}]}, {id: b}]",
    "nodes: [{id: a, dependencies: [{id: b, after: 1}]}, {id: b}]",
    "nodes: [{id: a, budget: {usd: 5}}]",
    "epics: [{id: e, milestones: [{id: m, tasks: [{id: t, type: epic}]}]}]",
    "budget: {soft_usd: much}",
  ])("refuses %s", (text) => {
    expect(parseRoadmap(text).problems).not.toEqual([]);
    expect(faultOf("roadmap", text)).toBeDefined();
  });
});

describe("a schedule", () => {
  it.each([
    "cron: '30 2 * * 1-5'\ntimezone: Europe/Berlin\ntask: {exec: [a]}",
    "$schema: ../schemas/schedule.json\nevery: 15m\njitter: 5\nmissed: all\nmissed_max: 3\ntask: {exec: [a]}",
    "at: [2030-12-24T18:00:00]\nstart:\ngrace: 1.5 h\noverlap: wait\npaused: true\nroadmap: reset",
    "at: 2030-12-24T18:00:00\nroadmap: {reset: [a], downstream: true}",
    "every: 2h\nroadmap: {reset: failed}",
    ...examples("schedules.md", /^(?:cron|every|at):/m),
  ])("takes %#", (text) => {
    expect(takesSchedule(text)).toBe(true);
    expect(faultOf("schedule", text)).toBeUndefined();
  });

  it.each([
    "5",
    "cron: 5\ntask: {exec: [a]}",
    "every: often\ntask: {exec: [a]}",
    "every: 1h\nmissed: two\ntask: {exec: [a]}",
    "every: 1h\nmissed_max: 0\ntask: {exec: [a]}",
    "every: 1h\noverlap: maybe\ntask: {exec: [a]}",
    "every: 1h\npaused: maybe\ntask: {exec: [a]}",
    "every: 1h\ntask: [a]",
    "every: 1h\ntsak: {exec: [a]}",
    "every: 1h\nroadmap: {reset: some}",
    "at: []\ntask: {exec: [a]}",
  ])("refuses %s", (text) => {
    expect(takesSchedule(text)).toBe(false);
    expect(faultOf("schedule", text)).toBeDefined();
  });
});

test("config.yaml may name its schema, which then takes it", () => {
  const text = "$schema: schemas/config.json\nworkers: 2\n";
  expect(decodeConfig(text, "config.yaml")).toEqual([{ path: ["workers"], value: 2 }]);
  expect(faultOf("config", text)).toBeUndefined();
  expect(faultOf("config", SAMPLE_CONFIG)).toBeUndefined();
  expect(() => decodeConfig("retry: {$schema: x}\n", "config.yaml")).toThrow("unknown setting");
});

test("init puts the schemas where the first lines of its files look, and makes old ones anew", async () => {
  const pool = newPool();
  const folder = join(pool.state, "schemas");
  await pool.run(["init", "--sample", pool.state]);
  fs.writeFileSync(join(folder, "task.json"), "of an earlier version");
  await pool.run(["init", pool.state]);
  expect(fs.readdirSync(folder).sort()).toEqual(
    Object.keys(SCHEMAS)
      .map((n) => `${n}.json`)
      .sort(),
  );
  const { stdout } = await pool.run(["schema", "task"]);
  expect(fs.readFileSync(join(folder, "task.json"), "utf8")).toBe(stdout);
  for (const name of ["config", "roadmap"] as const) {
    const text = name === "config" ? SAMPLE_CONFIG : SAMPLE_ROADMAP;
    expect(text.split("\n")[0]).toBe(`# yaml-language-server: $schema=schemas/${name}.json`);
  }
});

test("a task, a command and a schedule of config.yaml may name theirs", async () => {
  const pool = newPool({
    config: JSON.stringify({
      schedules: { one: { $schema: "x", every: "1h", task: { exec: ["true"] } } },
    }),
  });
  pool.drop("one", { $schema: "../../schemas/task.json", exec: ["true"] });
  expect((await pool.run(["run", "--drain", "--no-live"])).code).toBe(0);
  expect((await pool.result("one")).attempts).toBe(1);
  expect((await pool.run(["schedule", "next", "one", "--json"])).code).toBe(0);
});
