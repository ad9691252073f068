/** What a roadmap says, and what is wrong with one, at which line and column. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SAMPLE_ROADMAP } from "../../../src/cli/text/samples.ts";
import { findNode, parseRoadmap, placesIn } from "../../../src/parts/plan/read/document.ts";

const BAD = fileURLToPath(new URL("bad", import.meta.url));

function nodeOf(text: string, id: string) {
  const doc = parseRoadmap(text);
  expect(doc.problems).toEqual([]);
  const node = findNode(doc, id);
  if (node === undefined) throw new Error(`no node ${id}`);
  return node;
}

describe("a plan", () => {
  test("may be missing, empty, or only comments", () => {
    for (const text of ["", "\n", "# nothing yet\n", "\ufeff", "epics:\nnodes:\n", "nodes: []\n"]) {
      const doc = parseRoadmap(text);
      expect(doc.problems).toEqual([]);
      expect(doc.nodes).toEqual([]);
    }
  });

  test("of epics has containers before what they hold", () => {
    const doc = parseRoadmap(SAMPLE_ROADMAP);
    expect(doc.problems).toEqual([]);
    expect(doc.nodes.map((n) => [n.id, n.type, n.parent, n.epic, n.milestone, n.status])).toEqual([
      ["first-steps", "epic", undefined, undefined, undefined, "open"],
      ["see-it-work", "milestone", "first-steps", "first-steps", undefined, "open"],
      [
        "TEST-SUPERVISOR-INTEGRATION-001",
        "task",
        "see-it-work",
        "first-steps",
        "see-it-work",
        "open",
      ],
      [
        "TEST-SUPERVISOR-INTEGRATION-002",
        "task",
        "see-it-work",
        "first-steps",
        "see-it-work",
        "open",
      ],
    ]);
    expect(findNode(doc, "test-supervisor-integration-002")?.dependencies).toEqual([
      { id: "TEST-SUPERVISOR-INTEGRATION-001", required: "done" },
    ]);
  });

  test("may have a budget, and its nodes, too", () => {
    const text =
      "name: release\nbudget: &b {soft_usd: 2}\nnodes:\n  - {id: a, title: a, budget: *b}\n";
    expect(nodeOf(text, "a").budget).toEqual({ soft_usd: 2 });
    expect(parseRoadmap(text).budget).toEqual({ name: "release", budget: { soft_usd: 2 } });
    expect(parseRoadmap("budget: {turns: 9}\n").budget).toEqual({
      name: "plan",
      budget: { turns: 9 },
    });
    // Without a budget a plan may use the name for itself.
    expect(parseRoadmap("name: [what, ever]\nnodes: []\n")).toMatchObject({ problems: [] });
  });

  test.each([
    ["budget: 5\n", 1, "budget: expected object, found 5"],
    ["budget:\n  usd: 5\n", 2, "budget.usd: unexpected property"],
    ["budget: {soft_usd: -1}\n", 1, "budget.soft_usd"],
    ["name: a b\nbudget: {turns: 1}\n", 1, "name: "],
    ["nodes:\n  - {id: a, title: a,\n     budget: {turns: x}}\n", 3, "budget.turns"],
    ["nodes:\n  - {id: a, title: a, budget: [1]}\n", 2, "budget: expected limits"],
    ["epics:\n  - {id: a, budget: {turns: 1}}\n", 2, "budget: expected none"],
    ["budgets: {turns: 1}\n", 1, 'unknown key "budgets"'],
  ])("with a bad budget is refused: %j", (text, line, message) => {
    const [problem] = parseRoadmap(text).problems;
    expect(problem).toMatchObject({ line, message: expect.stringContaining(message) });
  });

  test("keeps ids and arguments as they are written", () => {
    const node = nodeOf("nodes:\n  - { id: 0012, exec: [sleep, 1.50, true] }\n", "0012");
    expect(node.exec).toEqual(["sleep", "1.50", "true"]);
  });

  test("reads every field of a node", () => {
    const text = `
nodes:
  - { id: plan-000, type: plan, status: pending }
  - id: n
    type: verify
    title: Check it
    status: needs_human
    parent: plan-000
    domain: web
    priority: critical
    dependencies: [{ node: plan-000, required_status: terminal }]
    retry_policy: { max_attempts: 4 }
    inputs: ["__run__:ctx.foo", { nodeId: plan-000, key: out.summary, as: plan }]
    description: as it should be
    prompt: do it
    acceptance: one thing
    verify: [[npm, test], npm run lint && true]
    agent: coder
    role: reviewer
    capabilities: typescript
    cwd: sub
    env: { A: x, N: 08 }
    timeout_ms: 500
    payload: { deep: [1, null, "x"] }
    reopened: 2
    my own: kept
`;
    const node = nodeOf(text, "n");
    expect(placesIn(parseRoadmap(text))(node)).toMatchObject({ line: 4, col: 9 });
    expect(node).toEqual({
      id: "n",
      type: "verify",
      title: "Check it",
      status: "needs_human",
      section: "nodes",
      parent: "plan-000",
      domain: "web",
      priority: "critical",
      dependencies: [{ id: "plan-000", required: "terminal" }],
      max_attempts: 4,
      inputs: [
        { nodeId: "__run__", key: "ctx.foo" },
        { nodeId: "plan-000", key: "out.summary", as: "plan" },
      ],
      goal: "as it should be",
      prompt: "do it",
      acceptance: ["one thing"],
      verify: [
        ["npm", "test"],
        ["sh", "-c", "npm run lint && true"],
      ],
      agent: "coder",
      role: "reviewer",
      capabilities: ["typescript"],
      cwd: "sub",
      env: { A: "x", N: "08" },
      timeout_ms: 500,
      payload: { deep: [1, null, "x"] },
      reopened: 2,
      order: 1,
    });
  });

  test("takes over what << brings in, but neither id nor status", () => {
    const text =
      "x: &x { priority: high, status: done, capabilities: [a] }\nnodes:\n  - { <<: *x, id: a, capabilities: [b] }\n";
    const node = nodeOf(text, "a");
    expect([node.priority, node.status, node.capabilities]).toEqual(["high", "open", ["b"]]);
  });

  test("finds the epic and milestone of a node by its parents", () => {
    const text = `
epics:
  - { id: E, milestones: [{ id: M, tasks: [{ id: T }] }] }
nodes:
  - { id: p, type: plan, parent: M }
  - { id: a, parent: p }
`;
    const node = nodeOf(text, "a");
    expect([node.epic, node.milestone]).toEqual(["E", "M"]);
  });

  test("can cross threads", () => {
    const doc = parseRoadmap(SAMPLE_ROADMAP);
    expect(structuredClone(doc)).toEqual(doc);
  });

  test("with thousands of aliases is read in linear time", () => {
    const items = Array.from({ length: 2000 }, (_, i) => `  - { id: n${i}, <<: *x }\n`).join("");
    const doc = parseRoadmap(`x: &x { priority: low }\nnodes:\n${items}`);
    expect(doc.problems).toEqual([]);
    expect(doc.nodes.every((node) => node.priority === "low")).toBe(true);
  });

  test("with a chain of thousands of dependencies is checked without recursion", () => {
    const items = Array.from(
      { length: 3000 },
      (_, i) => `  - { id: n${i}, dependencies: [n${(i + 1) % 3000}] }\n`,
    );
    const [problem] = parseRoadmap(`nodes:\n${items.join("")}`).problems;
    expect(problem?.code).toBe("cycle");
  });
});

describe("a bad plan", () => {
  const files = fs.readdirSync(BAD);

  test("has many forms in this corpus", () => {
    expect(files.length).toBeGreaterThanOrEqual(70);
  });

  // The first line of each file says what is expected: `# expect: code line:col, …`
  test.each(files)("%s is refused with the place of each fault", (name) => {
    const text = fs.readFileSync(`${BAD}/${name}`, "utf8");
    const expected = /^# expect: (.*?)\r?\n/.exec(text)?.[1];
    const { problems } = parseRoadmap(text);
    expect(problems.map((p) => `${p.code} ${p.line}:${p.col}`).join(", ")).toBe(expected);
    expect(problems.length).toBeGreaterThan(0);
    for (const { message, hint } of problems) {
      expect(message).toMatch(/\S/);
      expect(hint).toMatch(/\S/);
    }
  });

  test("tells a bounded number of faults", () => {
    const text = `nodes:\n${"  - { id: a, status: x }\n".repeat(1000)}`;
    expect(parseRoadmap(text).problems.length).toBe(200);
  });
});
