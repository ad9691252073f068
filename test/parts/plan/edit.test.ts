/** Edits of a plan's text: they do what they are for, and nothing else. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { SAMPLE_ROADMAP } from "../../../src/cli/text/samples.ts";
import { NODE_STATUSES, type NodeStatus } from "../../../src/core/roadmap.ts";
import { applyEdits, type RoadmapEdit } from "../../../src/parts/plan/edit/edit.ts";
import { renderFlow } from "../../../src/parts/plan/edit/flow-text.ts";
import {
  findNode,
  parseRoadmap,
  type RoadmapDocument,
} from "../../../src/parts/plan/read/document.ts";
import { planText } from "./plan-text.ts";

function edit(text: string, ...edits: RoadmapEdit[]): string {
  const doc = applyEdits(parseRoadmap(text), edits);
  expect(withoutFinds(doc)).toEqual(withoutFinds(parseRoadmap(doc.text)));
  return doc.text;
}

/** What must be the same, whether a document was changed or read anew. */
function withoutFinds(doc: RoadmapDocument) {
  const { nodesList, ...rest } = doc;
  return {
    ...rest,
    nodesList: { kind: nodesList.kind, last: nodesList.last, indent: nodesList.indent },
  };
}

const set = (id: string, status: NodeStatus): RoadmapEdit => ({ kind: "status", id, status });

describe("a change of status", () => {
  test("changes exactly that token", () => {
    const after = edit(SAMPLE_ROADMAP, set("TEST-SUPERVISOR-INTEGRATION-001", "done"));
    expect(after).toBe(SAMPLE_ROADMAP.replace('hello", status: pending', 'hello", status: done'));
    expect(after).toMatch(/TEST-SUPERVISOR-INTEGRATION-001.*status: done/);
  });

  test("back to open is written as its section writes it", () => {
    const text =
      "epics:\n  - { id: E, tasks: [{ id: T, status: done }] }\nnodes:\n  - { id: n, status: done }\n";
    expect(edit(text, set("T", "open"), set("n", "open"))).toBe(
      "epics:\n  - { id: E, tasks: [{ id: T, status: pending }] }\nnodes:\n  - { id: n, status: open }\n",
    );
  });

  test("keeps quotes", () => {
    expect(
      edit(
        `nodes:\n  - {id: a, status: "open"}\n  - {id: b, status: 'open'}\n`,
        set("a", "done"),
        set("b", "failed"),
      ),
    ).toBe(`nodes:\n  - {id: a, status: "done"}\n  - {id: b, status: 'failed'}\n`);
  });

  test.each([
    ["- {id: a}", "- {id: a, status: done}"],
    ["- { title: x, id: a, owner: me } # c", "- { title: x, id: a, status: done, owner: me } # c"],
    ["- {id: a, status: }", "- {id: a, status: done }"],
    ["- { id: a, # why\n    title: x }", "- { id: a, status: done, # why\n    title: x }"],
    ["- id: a # c\n    title: x", "- id: a # c\n    status: done\n    title: x"],
    ["- id: a\r\n    title: x\r", "- id: a\r\n    status: done\r\n    title: x\r"],
    ["- title: x\n    id: a", "- title: x\n    id: a\n    status: done"],
    ["- id: a\n    status:\n    title: x", "- id: a\n    status: done\n    title: x"],
    ["- &it\n    id: a", "- &it\n    id: a\n    status: done"],
    ["- id: a\n    status: &s open", undefined],
  ])("of %j makes the least of it", (before, after) => {
    const text = `nodes:\n  ${before}\n`;
    if (after === undefined)
      expect(() => edit(text, set("a", "done"))).toThrow(/without changing more/);
    else expect(edit(text, set("a", "done"))).toBe(`nodes:\n  ${after}\n`);
  });

  test("of an epic leaves all that is in it alone", () => {
    const text =
      "epics:\n  - tasks:\n      - { id: T }\n    id: E\n    milestones: []\n    # end\n";
    expect(edit(text, set("E", "done"))).toBe(
      "epics:\n  - tasks:\n      - { id: T }\n    id: E\n    status: done\n    milestones: []\n    # end\n",
    );
  });

  test("of a node that is gone is refused as such", () => {
    expect(() => edit("nodes: []\n", set("a", "done"))).toThrow(
      expect.objectContaining({ code: "ErrTaskNotFound", id: "a" }),
    );
  });

  test("keeps the budget of the plan", () => {
    const text = "budget: { soft_usd: 2 }\nnodes:\n  - { id: a }\n";
    const doc = parseRoadmap(edit(text, set("a", "done")));
    expect(doc.budget).toEqual({ name: "plan", budget: { soft_usd: 2 } });
  });

  test("works in a plan that has faults elsewhere", () => {
    const text = "nodes:\n  - { id: a, status: open }\n  - { id: b, dependencies: [zz] }\n";
    expect(applyEdits(parseRoadmap(text), [set("a", "done")]).text).toContain(
      "{ id: a, status: done }",
    );
  });
});

describe("a new node", () => {
  const add = (id: string, more: object = {}): RoadmapEdit => ({
    kind: "add",
    node: { id, ...more },
  });

  test("goes to the end of the list on one line", () => {
    expect(
      edit(
        "nodes:\n- { id: a } # c\n# d\nmine: 1\n",
        add("b", { title: "B: x", dependencies: ["a"] }),
      ),
    ).toBe(
      `nodes:\n- { id: a } # c\n- { id: b, type: task, status: open, title: "B: x", dependencies: [a] }\n# d\nmine: 1\n`,
    );
  });

  test.each([
    ["", "nodes:\n  - { id: b, type: task, status: open }\n"],
    ["\ufeff", "\ufeffnodes:\n  - { id: b, type: task, status: open }\n"],
    ["# plan", "# plan\nnodes:\n  - { id: b, type: task, status: open }\n"],
    ["nodes: [] # c\n", "nodes: # c\n  - { id: b, type: task, status: open }\n"],
    ["nodes:\nx: 1\n", "nodes:\n  - { id: b, type: task, status: open }\nx: 1\n"],
    ["nodes: ~", "nodes:\n  - { id: b, type: task, status: open }"],
    ["nodes: [{ id: a }]\r\n", "nodes: [{ id: a }, { id: b, type: task, status: open }]\r\n"],
    ["x: 1\r\n", "x: 1\r\nnodes:\r\n  - { id: b, type: task, status: open }\r\n"],
  ])("makes of %j a list", (before, after) => {
    expect(edit(before, add("b"))).toBe(after);
  });

  test("does not disturb a text that keeps its blank lines", () => {
    const text = "nodes:\n  - id: a\n    prompt: |+\n      x\n\n\n";
    expect(edit(text, add("b"))).toBe(`${text}  - { id: b, type: task, status: open }\n`);
  });

  test("may have any value", () => {
    const payload = { "a b": ["\u2028", '"', "no", "1", "🚀", null, true, 1.5, {}], "": "x" };
    const doc = applyEdits(parseRoadmap(""), [add("b", { payload, prompt: "two\nlines\t\u0007" })]);
    expect(findNode(parseRoadmap(doc.text), "b")).toMatchObject({
      payload,
      prompt: "two\nlines\t\u0007",
    });
  });

  test.each([
    ["an id that is there", { id: "A" }, "ErrTaskExists"],
    ["a bad id", { id: "../x" }, "ErrInvalidRoadmap"],
    ["a bad value", { id: "b", priority: "urgent" }, "ErrInvalidRoadmap"],
    ["a dependency on nothing", { id: "b", dependencies: ["zz"] }, "ErrInvalidRoadmap"],
    ["a misspelt key", { id: "b", dependancies: ["a"] }, "ErrInvalidRoadmap"],
    ["no parent of that name", { id: "b", parent: "zz" }, "ErrInvalidRoadmap"],
  ])("with %s is refused", (_what, node, code) => {
    expect(() => edit("nodes:\n  - { id: a }\n", { kind: "add", node })).toThrow(
      expect.objectContaining({ code }),
    );
  });
});

describe("a set key", () => {
  const one = (
    body: string,
    field: "title" | "acceptance" | "max_attempts",
    value: unknown,
  ): string => edit(`nodes:\n  ${body}\n`, { kind: "set", id: "a", field, value }).slice(9, -1);

  test.each([
    ["- { id: a, title: x } # c", "- { id: a, title: new } # c"],
    ["- { id: a }", "- { id: a, title: new }"],
    [
      "- id: a\n    title: >\n      long\n      text\n    x: 1",
      "- id: a\n    title: new\n    x: 1",
    ],
    [
      "- id: a\n    status: open\n    acceptance:\n      - z",
      "- id: a\n    status: open\n    title: new\n    acceptance:\n      - z",
    ],
  ])("replaces or joins %j", (before, after) => {
    expect(one(before, "title", "new")).toBe(after);
  });

  test("of a block list becomes one line, and a comment at its key stays", () => {
    expect(
      one("- id: a\n    acceptance: # all\n      - x\n      - y\n    title: t", "acceptance", [
        "z",
        "0",
      ]),
    ).toBe(`- id: a\n    acceptance: [z, "0"] # all\n    title: t`);
  });

  test("with a bad value is refused", () => {
    expect(() => one("- id: a", "max_attempts", 0)).toThrow(/whole number/);
  });

  test("that ends a circle of parents is refused", () => {
    const text = "nodes:\n  - { id: p, type: plan }\n  - { id: q, type: plan, parent: p }\n";
    expect(() => edit(text, { kind: "set", id: "p", field: "parent", value: "q" })).toThrow(
      /circle/,
    );
  });
});

describe("a dependency", () => {
  const add = (on: string, required?: "terminal"): RoadmapEdit => ({
    kind: "add-dep",
    id: "c",
    on,
    ...(required && { required }),
  });
  const remove = (on: string): RoadmapEdit => ({ kind: "remove-dep", id: "c", on });
  const one = (body: string, change: RoadmapEdit): string =>
    edit(`nodes:\n  - {id: a}\n  - {id: 0012}\n  ${body}\n`, change).slice(36, -1);

  test.each([
    ["- { id: c }", add("a"), "- { id: c, dependencies: [a] }"],
    ["- { id: c, dependencies: [] }", add("a"), "- { id: c, dependencies: [a] }"],
    ["- { id: c, dependencies: 0012 }", add("a"), `- { id: c, dependencies: ["0012", a] }`],
    ["- { id: c, depends_on: [ 0012 ] }", add("a"), "- { id: c, depends_on: [ 0012, a ] }"],
    ["- { id: c, dependencies: [a] }", add("a"), "- { id: c, dependencies: [a] }"],
    [
      "- { id: c, dependencies: [a, 0012] }",
      add("a", "terminal"),
      "- { id: c, dependencies: [0012, { id: a, required_status: terminal }] }",
    ],
    [
      "- id: c\n    dependencies:\n      - 0012 # c",
      add("a"),
      "- id: c\n    dependencies:\n      - 0012 # c\n      - a",
    ],
    [
      "- id: c\n    dependencies: # d\n    - 0012 # c\n    - a\n    # e",
      remove("A"),
      "- id: c\n    dependencies: # d\n    - 0012 # c\n    # e",
    ],
    [
      "- id: c\n    dependencies: # d\n      - a\n    title: x",
      remove("a"),
      "- id: c\n    dependencies: [] # d\n    title: x",
    ],
    ["- { id: c, dependencies: [a, 0012] }", remove("a"), "- { id: c, dependencies: [0012] }"],
    ["- { id: c, dependencies: [0012, a] }", remove("a"), "- { id: c, dependencies: [0012] }"],
    ["- { id: c, dependencies: [a] }", remove("a"), "- { id: c, dependencies: [] }"],
    ["- { id: c }", remove("a"), "- { id: c }"],
  ])("of %j", (before, change, after) => {
    expect(one(before, change)).toBe(after);
  });

  test("that ends a circle is refused", () => {
    expect(() => edit("nodes:\n  - {id: c}\n  - {id: d, dependencies: [c]}\n", add("d"))).toThrow(
      /circle/,
    );
  });
});

test("an item of 10,000 keys is changed in about the time that it takes to read it", {
  timeout: 420_000,
}, () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `x${i}: ${i}`);
  const text = `nodes:\n  - id: a\n    status: open\n    ${keys.join("\n    ")}\n`;
  const start = process.cpuUsage();
  const doc = parseRoadmap(text);
  const read = process.cpuUsage(start);
  applyEdits(doc, [set("a", "done")]);
  const both = process.cpuUsage(start);
  // Time of the processor, so that others may use it too. Each key compared with each takes thirty times as long.
  expect(both.user).toBeLessThan(8 * read.user);
});

describe("any plan", () => {
  const aStatus = fc.constantFrom(...NODE_STATUSES);

  test("is what was meant, before anything is changed", () => {
    fc.assert(
      fc.property(planText, ({ text, ids }) => {
        const doc = parseRoadmap(text);
        expect(doc.problems).toEqual([]);
        expect(doc.nodes.map((node) => node.id).sort()).toEqual([...ids].sort());
      }),
      { numRuns: 200 },
    );
  });

  test("changes one status and not a byte else", () => {
    fc.assert(
      fc.property(planText, fc.nat(), aStatus, ({ text, ids }, n, status) => {
        fc.pre(ids.length > 0);
        const id = ids[n % ids.length] as string;
        const before = parseRoadmap(text);
        const after = applyEdits(before, [set(id, status)]);
        const again = parseRoadmap(after.text);
        expect(withoutFinds(after)).toEqual(withoutFinds(again));
        expect(again.nodes.map((m) => ({ ...m }))).toEqual(
          before.nodes.map((m) => ({
            ...m,
            status: m.id === id ? status : m.status,
          })),
        );
        // One piece differs: a word in place of a word, or a new pair.
        const [old, fresh] = differenceOf(text, after.text);
        expect(old).toMatch(/^[a-z_]*$/);
        expect(fresh).toMatch(/^[a-z_:, \r\n]*$/);
        expect(fresh.length).toBeLessThan(60);
      }),
      { numRuns: 250 },
    );
  });

  test("takes any edits in a row or together, and says the same as if it were read anew after each", () => {
    const anEdit = fc.oneof(
      fc.record({ kind: fc.constant("status" as const), n: fc.nat(), status: aStatus }),
      fc.record({ kind: fc.constant("add" as const), n: fc.nat(), m: fc.nat() }),
      fc.record({
        kind: fc.constant("add-dep" as const),
        n: fc.nat(),
        m: fc.nat(),
        required: fc.constantFrom("done" as const, "terminal" as const),
      }),
      fc.record({ kind: fc.constant("remove-dep" as const), n: fc.nat(), m: fc.nat() }),
      fc.record({
        kind: fc.constant("set" as const),
        n: fc.nat(),
        field: fc.constantFrom("title" as const, "prompt" as const),
        value: fc.string(),
      }),
      fc.record({
        kind: fc.constant("set" as const),
        n: fc.nat(),
        field: fc.constant("acceptance" as const),
        value: fc.array(fc.string(), { maxLength: 3 }),
      }),
    );
    fc.assert(
      fc.property(
        planText,
        fc.array(anEdit, { minLength: 1, maxLength: 6 }),
        ({ text, ids: first }, wishes) => {
          const ids = first.filter((id) => id.startsWith("TASK"));
          let doc = parseRoadmap(text);
          const changes: RoadmapEdit[] = [];
          for (const [i, wish] of wishes.entries()) {
            const a = ids[wish.n % Math.max(1, ids.length)];
            const b = "m" in wish ? ids[wish.m % Math.max(1, ids.length)] : undefined;
            let change: RoadmapEdit;
            if (wish.kind === "add") {
              change = {
                kind: "add",
                node: { id: `new-${i}`, title: `n ${i}`, dependencies: b === undefined ? [] : [b] },
              };
              ids.push(`new-${i}`);
            } else if (a === undefined) continue;
            else if (wish.kind === "status") change = set(a, wish.status);
            else if (wish.kind === "set")
              change = { kind: "set", id: a, field: wish.field, value: wish.value };
            else if (b === undefined || ids.indexOf(b) >= ids.indexOf(a)) continue;
            else change = { ...wish, id: a, on: b };
            const next = applyEdits(doc, [change]);
            expect(withoutFinds(next)).toEqual(withoutFinds(parseRoadmap(next.text)));
            const touched = change.kind === "add" ? change.node.id : change.id;
            const rest = (one: RoadmapDocument) =>
              one.nodes
                .filter((node) => node.id !== touched)
                .map((node) => ({ ...node, order: 0 }));
            expect(rest(next)).toEqual(rest(doc));
            doc = next;
            changes.push(change);
          }
          const together = applyEdits(parseRoadmap(text), changes);
          expect(together.text).toBe(doc.text);
          expect(withoutFinds(together)).toEqual(withoutFinds(doc));
          for (const comment of text.match(/# (?:ein|später).*/g) ?? [])
            expect(doc.text).toContain(comment);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test("any value can stand on one line", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const line = renderFlow(value);
      expect(line).not.toMatch(/[\n\r]/);
      expect(parse(line)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

/** What is left of both when the same beginning and the same end are taken away. */
function differenceOf(a: string, b: string): [string, string] {
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return [a.slice(start, a.length - end), b.slice(start, b.length - end)];
}

describe("an edit of an item that others take over", () => {
  const text =
    "nodes:\n  - &x { id: a, exec: [make], priority: low, dependencies: [c] }\n" +
    "  - { <<: *x, id: b, priority: low }\n  - { id: c }\n  - { id: d, exec: [sh, -c, 'a &b'] }\n";

  test.each<[string, RegExp, RoadmapEdit]>([
    ["a dependency", /would change b as well as a/, { kind: "add-dep", id: "a", on: "b" }],
    ["one less", /would change b as well as a/, { kind: "remove-dep", id: "a", on: "c" }],
    ["a field", /would change b as well as a/, { kind: "set", id: "a", field: "goal", value: "g" }],
  ])("is refused when it would change them: %s", (_name, message, change) => {
    expect(() => edit(text, change)).toThrow(message);
  });

  test("is made when they say it in their own words, or do not say it", () => {
    const low = { kind: "set", field: "priority", value: "high" } as const;
    expect(edit(text, { ...low, id: "a" })).toBe(text.replace("low", "high"));
    expect(edit(text, { ...low, id: "c" })).toContain("{ id: c, priority: high }");
    expect(edit(text, set("a", "done"))).toContain("&x { id: a, status: done, exec");
  });
});
