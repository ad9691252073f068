/**
 * The table of fields: each field means the same wherever it may stand, is refused by name elsewhere, and no misspelling of it passes
 * without a word. The last tests take a field out of one place of the table, and out of a reader, and must see it.
 */
import fs from "node:fs";
import { describe, expect, it, test } from "vitest";
import { OPTIONS } from "../../src/cli/enqueue/task-options.ts";
import { parseArguments } from "../../src/cli/shell/parse.ts";
import { decodeLine as decodeBatchLine } from "../../src/codec/batch-codec.ts";
import { decodeEnvelope } from "../../src/codec/envelope.ts";
import { decodeTask, TaskSchema } from "../../src/codec/task-codec.ts";
import { RoadmapSchema } from "../../src/config/roadmap-schema.ts";
import { ScheduleSchema } from "../../src/config/schedule-schema.ts";
import { isObject } from "../../src/core/json-object.ts";
import { NODE_PRIORITIES } from "../../src/core/priority.ts";
import { isOneEdit } from "../../src/core/suggest.ts";
import {
  FieldJudge,
  type FieldPlace,
  type FieldTable,
  fieldsIn,
  fieldsOfBatch,
  taskFields,
} from "../../src/core/task-fields.ts";
import { parseRoadmap } from "../../src/parts/plan/read/document.ts";
import { readSchedule } from "../../src/parts/schedules/schedule.ts";

const PLACES: readonly FieldPlace[] = ["task", "line", "node", "schedule"];

/** A good value of each field that cannot be a text. */
const VALUES: Readonly<Record<string, unknown>> = {
  priority: "high",
  dependencies: ["a"],
  depends_on: "a",
  max_attempts: 2,
  retry_policy: { max_attempts: 2 },
  exec: ["true"],
  agents: ["x"],
  permissions: { mode: "edit" },
  capabilities: ["x"],
  payload: { a: 1 },
  env: { A: "1" },
  env_from: { A: "env:B" },
  timeout_ms: 1000,
  run_limits: { processes: 5 },
  verify: ["true"],
  expect_files: ["a"],
  budget: { soft_usd: 1 },
  not_before: 1,
  weight: 2,
  limits: ["gpu"],
  owns: { write: ["a"] },
  worktree: "auto",
  setup: ["true"],
  cache: { paths: ["node_modules"], key: ["package-lock.json"] },
  land: "branch",
  base: "target",
  land_command: ["true"],
  land_into_checkout: true,
  keep_background: true,
  dedup_window_ms: 1,
  on_success: ["true"],
  on_failure: ["true"],
  on_settled: ["true"],
  protect: ["x"],
  verify_from: "target",
  prove: true,
  metadata: { a: 1 },
  traceparent: `00-${"1".repeat(32)}-${"1".repeat(16)}-01`,
  sequence_number: 1,
  created_at: 1,
  updated_at: 1,
  claimed_at: 1,
  attempts: 1,
  inputs: ["a:b"],
  acceptance: ["x"],
  reopened: 1,
  status: "open",
  type: "task",
  id: "me",
};
const goodValue = (field: string): unknown => VALUES[field] ?? "x";

/** What a file of a place says about the field: undefined when it is accepted without a word. */
type Reader = (fields: Record<string, unknown>) => string | undefined;
const READERS: Readonly<Record<"task" | "line" | "node" | "schedule", Reader>> = {
  task(fields) {
    const { task } = decodeTask(json({ prompt: "x", ...fields }), "me");
    return firstOf(new FieldJudge().judge(task, "task"));
  },
  line: (fields) => firstOf(fieldsOfBatch(JSON.stringify({ prompt: "x", ...fields }))),
  node(fields) {
    const nodes = [{ id: "me", exec: ["true"], ...fields }, { id: "a" }, { id: "x", type: "epic" }];
    const { problems, warnings = [] } = parseRoadmap(JSON.stringify({ nodes }));
    const [one] = [...problems, ...warnings];
    return one && `${one.message} ${one.hint}`;
  },
  schedule(fields) {
    try {
      const value = { every: "1h", task: { exec: ["true"] }, ...fields };
      return readSchedule("s", { value }, "s.yaml", "UTC").warnings[0];
    } catch (error) {
      const { message, hint } = error as { message: string; hint?: string };
      return `${message} ${hint}`;
    }
  },
};

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function firstOf([one]: readonly { why: string }[]): string | undefined {
  return one?.why;
}

/** The members that the schemas name, by place. */
const SCHEMAS: Readonly<Record<string, readonly string[]>> = {
  task: Object.keys(TaskSchema.properties),
  schedule: Object.keys(ScheduleSchema.properties),
  node: membersOfItems(),
};

function membersOfItems(): string[] {
  const names = new Set<string>();
  const look = (schema: unknown): void => {
    if (!isObject(schema)) return;
    const { properties } = schema;
    if (isObject(properties) && "id" in properties && "title" in properties)
      for (const name of Object.keys(properties)) names.add(name);
    for (const value of Object.values(schema))
      if (Array.isArray(value)) value.forEach(look);
      else look(value);
  };
  look(RoadmapSchema);
  return [...names];
}

/** Where the table and the programs that read the files differ. */
function differences(table: FieldTable, schemas: typeof SCHEMAS = SCHEMAS): string[] {
  const found: string[] = [];
  for (const [place, members] of Object.entries(schemas)) {
    const listed = fieldsIn(place as FieldPlace, table);
    for (const name of members) if (!listed.includes(name)) found.push(`${place}: ${name} is new`);
    for (const name of listed)
      if (!members.includes(name)) found.push(`${place}: ${name} has no schema`);
  }
  for (const place of ["task", "line", "node"] as const)
    for (const [name, row] of table) {
      // Epics alone hold these.
      if (place === "node" && (name === "tasks" || name === "milestones")) continue;
      if (name === "maxAttempts" || name === "worktree_of") continue;
      const says = READERS[place]({ [name]: goodValue(name) });
      const isIn = row.in.includes(place);
      if (isIn && says !== undefined) found.push(`${place}: ${says}`);
      if (!isIn && !says?.includes(JSON.stringify(name)))
        found.push(`${place}: ${name} is taken without a word`);
    }
  return found;
}

describe("each field of the table", () => {
  it("is read where it may stand, and refused by name elsewhere", () => {
    expect(differences(taskFields())).toEqual([]);
  });

  it("says where it may stand", () => {
    expect(READERS.task({ goal: "x" })).toBe(
      '"goal" has no effect in a task, only in a node of the plan; write "description"',
    );
    expect(READERS.line({ priority: 1 })).toBe(
      '"priority" has no effect in a line of a batch, only in a task or a node of the plan',
    );
    expect(READERS.node({ not_before: 1 })).toContain("has no effect in a node of the plan");
    expect(READERS.schedule({ priority: 1 })).toContain("write it under task");
  });

  it("is in docs/tasks.md with the words that are not accepted for it", () => {
    const text = fs.readFileSync(new URL("../../docs/tasks.md", import.meta.url), "utf8");
    const listed = [...text.matchAll(/^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$/gm)];
    const table = listed.map(([, name, words = ""]) => [name, words.replaceAll("`", "")]);
    const wanted = [...taskFields()].filter(
      ([, row]) => row.notCalled.length > 0 && !row.in.includes("schedule"),
    );
    expect(table).toEqual(wanted.map(([name, row]) => [name, row.notCalled.join(", ")]));
  });

  it("is in docs/tasks.md with the greatest length of each of its lists", () => {
    const text = fs.readFileSync(new URL("../../docs/tasks.md", import.meta.url), "utf8");
    const rows = text.split("\n").filter((line) => line.startsWith("| `"));
    for (const [field, schema] of Object.entries(TaskSchema.properties))
      for (const [, count] of JSON.stringify(schema).matchAll(/"maxItems":(\d+)/g)) {
        const row = rows.find((line) => line.split("|")[1]?.includes(`\`${field}`));
        expect(row, field).toContain(Number(count).toLocaleString("en"));
      }
  });

  it("has an option of `enqueue`, if that can set it", () => {
    const flags = new Set([...taskFields().values()].flatMap(({ flag = [] }) => flag));
    // These set parts of a field, or belong to the command.
    const others = ["shell", "vars", "inherit-env", "max-cpu", "max-processes", "max-disk"];
    const own = "file each null batch like edit allow-unknown dry-run wait".split(" ");
    expect([...flags, ...others, ...own].sort()).toEqual(Object.keys(OPTIONS).sort());
  });

  it.each([
    ["--depends-on", "--after"],
    ["--dependencies", "--after"],
    ["--deps", "--after"],
    ["--retries", "--max-attempts"],
    ["--timeout-ms", "--timeout"],
    ["--not-before", "--delay"],
    ["--dedup_key", "--dedup"],
    ["--working-dir", "--cwd"],
  ])("is found from %s on the command line", (typed, meant) => {
    const parse = (): unknown => parseArguments("enqueue", [`${typed}=1`], OPTIONS);
    expect(parse).toThrow(expect.objectContaining({ hint: `did you mean ${meant}?` }));
  });
});

describe("a misspelt field", () => {
  const LETTERS = "abcdefghijklmnopqrstuvwxyz_";

  function* misspellings(name: string): Generator<string> {
    for (let at = 0; at <= name.length; at++) {
      const [head, tail] = [name.slice(0, at), name.slice(at)];
      yield head + tail.slice(1);
      if (tail.length > 1) yield head + tail[1] + tail[0] + tail.slice(2);
      for (const letter of LETTERS) {
        yield head + letter + tail;
        yield head + letter + tail.slice(1);
      }
    }
    yield name.toUpperCase();
    yield name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    yield name.replaceAll("_", "-");
  }

  function missed(judge: FieldJudge): string[] {
    const found: string[] = [];
    for (const place of [...PLACES, "metadata"] as const)
      for (const field of fieldsIn(place))
        for (const name of misspellings(field)) {
          const isField = taskFields().get(name)?.in.includes(place) === true || name === "";
          if (isField) continue;
          if (judge.judgeName(name, place) === undefined) found.push(`${place}: ${name}`);
        }
    return found;
  }

  it("is noticed in every place, with each single edit", () => {
    expect(missed(new FieldJudge())).toEqual([]);
  });

  it("of a table without a field in one place would pass, and this test sees it", () => {
    const row = taskFields().get("max_attempts");
    const broken = new Map(taskFields()).set("max_attempts", {
      notCalled: [],
      in: (row?.in ?? []).filter((place) => place !== "node"),
    });
    expect(missed(new FieldJudge(broken))).toContain("node: max_attempt");
    expect(differences(broken)).toContain("node: max_attempts is new");
    const { node = [], ...others } = SCHEMAS;
    const less = { ...others, node: node.filter((name) => name !== "timeout_ms") };
    expect(differences(taskFields(), less)).toEqual(["node: timeout_ms has no schema"]);
  });

  it("is noticed by each reader, and so are the words that are not accepted", () => {
    for (const [name, { notCalled, in: places }] of taskFields())
      for (const place of PLACES)
        for (const word of places.includes(place) ? [...notCalled, `${name}x`] : [])
          expect(
            READERS[place as keyof typeof READERS]({ [word]: 1 }),
            `${place} ${word}`,
          ).toContain(name);
  });

  it("is noticed inside of metadata, retry_policy, a callback, and the task of a schedule", () => {
    expect(READERS.task({ metadata: { depends_on: ["a"] } })).toBe(
      'metadata: "depends_on" is no field of metadata; did you mean "dependencies"?',
    );
    expect(READERS.task({ metadata: { max_attempts: 1, title: 1, anything: 1 } })).toBeUndefined();
    expect(READERS.task({ retry_policy: { max_attempt: 1 } })).toContain('"max_attempts"');
    expect(READERS.task({ on_failure: { exec: ["x"], timeout: 1 } })).toContain('"timeout_ms"');
    expect(READERS.schedule({ task: { exec: ["x"], retries: 1 } })).toContain('"max_attempts"');
  });

  it("makes the result of a planner invalid", () => {
    const added = (fields: object) =>
      decodeEnvelope({ status: "success", next: { addNodes: [{ id: "n", ...fields }] } }).problems;
    expect(added({ dependencys: ["a"] })?.[0]).toContain('did you mean "dependencies"?');
    expect(added({ dependsOn: ["a"], ticket: 1, priority: 7 })).toBeUndefined();
  });
});

describe("a name", () => {
  it.each(["owner", "labels", "x", "ticket", "$schema", "n".repeat(70)])(
    "%s of a person's own is taken in silence",
    (name) => {
      for (const place of ["task", "line", "node"] as const)
        expect(READERS[place]({ [name]: "x" })).toBeUndefined();
    },
  );
});

describe("what means the same", () => {
  const decoded = (fields: object) => decodeTask(json({ prompt: "x", ...fields }), "me").task;

  it.each([
    { dependencies: ["a", "B"] },
    { depends_on: ["a", "B"] },
    { dependencies: "a", depends_on: [{ node: "B" }] },
    { metadata: { dependencies: ["a"] }, dependencies: ["B"] },
    { dependencies: [{ id: "B", required_status: "done" }], metadata: { dependencies: ["a"] } },
  ])("are dependencies in any place: %j", (fields) => {
    const { dependencies } = decoded(fields).metadata ?? {};
    expect(new Set(dependencies)).toEqual(new Set(["a", "B"]));
    expect(decoded(decoded(fields))).toEqual(decoded(fields));
  });

  it("are dependencies of a task and of a node in one form", () => {
    for (const one of ["a", ["a"], [{ id: "a", required_status: "terminal" }], { node: "a" }])
      for (const name of ["dependencies", "depends_on"]) {
        expect(READERS.task({ [name]: one })).toBeUndefined();
        expect(READERS.node({ [name]: one })).toBeUndefined();
      }
    expect(() => decoded({ dependencies: [{ required_status: "done" }] })).toThrow("dependencies");
    expect(() => decoded({ dependencies: ["me"] })).toThrow("depends on itself");
    const line = (fields: object) =>
      decodeBatchLine(JSON.stringify({ prompt: "x", ...fields }), "b", 1);
    expect(() => line({ depends_on: "a" })).toThrow("a line of a batch has no dependencies");
  });

  it("are priorities in a task, a node and on the command line", () => {
    for (const [word, number] of [
      ["critical", 300],
      ["high", 200],
      ["medium", 100],
      ["low", 0],
    ]) {
      expect(decoded({ priority: word }).priority).toBe(number);
      expect(NODE_PRIORITIES).toContain(word);
      expect(
        parseArguments("enqueue", ["--priority", String(word)], OPTIONS).values["priority"],
      ).toBe(word);
    }
    expect(parseArguments("enqueue", ["--priority=-5"], OPTIONS).values["priority"]).toBe("-5");
    expect(() => parseArguments("enqueue", ["--priority", "hi"], OPTIONS)).toThrow(
      "--priority wants critical, high, medium, low, or a whole number",
    );
    const plan = parseRoadmap("nodes: [{id: a, priority: 7}, {id: b, priority: high}]");
    expect(plan.problems).toEqual([]);
    expect(plan.nodes.map(({ priority }) => priority)).toEqual([7, "high"]);
  });

  it("are numbers of runs", () => {
    expect(decoded({ retry_policy: { max_attempts: 4 } }).max_attempts).toBe(4);
    expect(decoded({ retry_policy: { maxAttempts: 4 }, max_attempts: 2 }).max_attempts).toBe(4);
    expect(() => decoded({ retry_policy: { max_attempts: 0 } })).toThrow("retry_policy");
    const plan = parseRoadmap(
      "nodes: [{id: a, retry_policy: {max_attempts: 4}}, {id: b, max_attempts: 4}]",
    );
    expect(plan.nodes.map((node) => node.max_attempts)).toEqual([4, 4]);
  });
});

test("one edit is an insertion, a deletion, a replacement or a swap, and no more", () => {
  for (const [a, b, isOne] of [
    ["a", "a", true],
    ["ab", "ba", true],
    ["abc", "ac", true],
    ["ac", "abc", true],
    ["abc", "axc", true],
    ["abcd", "badc", false],
    ["abc", "cba", false],
    ["aab", "ab", true],
    ["abc", "abxyc", false],
  ] as const)
    expect(isOneEdit(a, b), `${a} ${b}`).toBe(isOne);
});
