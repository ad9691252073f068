/** Which nodes are launched next, in which order, and why the others wait. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveAgent } from "../../../src/core/matching.ts";
import { NODE_STATUSES, type RoadmapNode } from "../../../src/core/roadmap.ts";
import type { AgentSettings } from "../../../src/core/settings.ts";
import { applyEdits } from "../../../src/parts/plan/edit/edit.ts";
import { findNode, parseRoadmap } from "../../../src/parts/plan/read/document.ts";
import { type PlanNextOptions, Planner, planNext } from "../../../src/parts/plan/rules/next.ts";
import { planText } from "./plan-text.ts";

function next(text: string, options?: PlanNextOptions) {
  const doc = parseRoadmap(text);
  expect(doc.problems).toEqual([]);
  const { ready, waiting } = planNext(doc.nodes, options);
  return {
    ready: ready.map((node) => node.id),
    waiting: Object.fromEntries(waiting.map(({ node, reason }) => [node.id, reason])),
  };
}

describe("the order", () => {
  test("is priority, then type, then the file's", () => {
    const { ready } = next(`
nodes:
  - { id: a, type: final_verify, priority: high }
  - { id: b, type: integrate, priority: high }
  - { id: c, type: verify, priority: high }
  - { id: d }
  - { id: e, priority: high }
  - { id: f, priority: low }
  - { id: g, type: plan, priority: high }
  - { id: h, priority: critical }
  - { id: i, priority: high }
`);
    expect(ready).toEqual(["h", "g", "e", "i", "c", "b", "a", "d", "f"]);
  });

  test("leaves out containers and what runs or has ended", () => {
    const text = `
epics: [{ id: E, milestones: [{ id: M, tasks: [{ id: t, status: in_progress }, { id: u }] }] }]
nodes: [{ id: a, status: done }, { id: b, status: failed }]
`;
    expect(next(text)).toEqual({ ready: ["u"], waiting: {} });
  });
});

describe("a dependency that only has to end", () => {
  const text = (a: string, more = ""): string => `
epics: [{ id: E, milestones: [{ id: M, tasks: [{ id: x, dependencies: [b] }, { id: y, status: done }] }] }]
nodes:
  - { id: p, type: plan, status: done }
  - { id: a, parent: p, status: ${a} }
  - { id: b, dependencies: [a] }
  - { id: c, dependencies: [b] }
  - { id: night, dependencies: [{ id: c, required_status: terminal }] }
  - { id: after-all, dependencies: [{ id: E, required_status: terminal }] }
${more}`;
  const escalation = (subject: string, cause: string, status: string): string =>
    `  - { id: plan-escalate-${subject}, type: plan, parent: p, status: ${status}, dependencies: [{ id: ${cause}, required_status: terminal }] }\n`;

  test("has ended when it can never start, however far away the failure is", () => {
    expect(next(text("failed")).ready).toEqual(["night", "after-all"]);
    expect(next(text("open")).ready).toEqual(["a"]);
    expect(next(text("in_progress")).waiting["night"]).toBe("waits for c (open)");
  });

  test("has not ended while an escalation may mend the failure, and has when that is over", () => {
    const open = next(text("failed", escalation("a", "a", "open")));
    expect(open.ready).toEqual(["plan-escalate-a"]);
    expect(open.waiting["after-all"]).toBe("waits for E (1 of 2 ended)");
    for (const status of ["in_progress", "needs_human", "blocked"])
      expect(next(text("failed", escalation("a", "a", status))).ready).toEqual([]);
    for (const status of ["done", "failed"])
      expect(next(text("failed", escalation("a", "a", status))).ready).toEqual([
        "night",
        "after-all",
      ]);
    const above = escalation("a", "a", "failed") + escalation("p", "plan-escalate-a", "open");
    expect(next(text("failed", above)).ready).toEqual(["plan-escalate-p"]);
  });

  test("is not run a second time when the failed node is opened again later", () => {
    const ran = text("open").replace("{ id: night,", "{ id: night, status: done,");
    expect(next(ran).ready).toEqual(["a"]);
  });
});

describe("a node that is done, and whose work has not landed", () => {
  const text = `
epics: [{ id: E, milestones: [{ id: M, tasks: [{ id: a, status: done }, { id: B, status: done }] }] }]
nodes:
  - { id: after-a, dependencies: [a] }
  - { id: after-b, dependencies: [B] }
  - { id: after-b-ended, dependencies: [{ id: B, required_status: terminal }] }
  - { id: after-all, dependencies: [E] }
  - { id: after-all-ended, dependencies: [{ id: E, required_status: terminal }] }
`;
  const moving = { is: "moving", how: "has not landed: rev reviews it" } as const;
  const stuck = { is: "stuck", how: "did not land" } as const;

  test("holds back what depends on it, and on what it is in", () => {
    expect(next(text, { unlanded: new Map([["b", moving]]) })).toEqual({
      ready: ["after-a"],
      waiting: {
        "after-b": "waits for B, which has not landed: rev reviews it",
        "after-b-ended": "waits for B, which has not landed: rev reviews it",
        "after-all": "waits for E (1 of 2 done)",
        "after-all-ended": "waits for E (1 of 2 ended)",
      },
    });
  });

  test("has ended when only a person can land it", () => {
    expect(next(text, { unlanded: new Map([["b", stuck]]) })).toEqual({
      ready: ["after-a", "after-b-ended", "after-all-ended"],
      waiting: {
        "after-b": "waits for B, which did not land",
        "after-all": "cannot start: 1 of 2 in E failed or did not land",
      },
    });
  });

  test("holds nothing back once it has landed, also for one who decides again and again", () => {
    const { nodes } = parseRoadmap(text);
    const planner = new Planner();
    planner.next(nodes, { unlanded: new Map([["b", stuck]]) });
    expect(planner.next(nodes, { unlanded: new Map() })).toEqual(planNext(nodes));
    expect(next(text, { unlanded: new Map([["unknown", stuck]]) })).toEqual(next(text));
  });
});

describe("a node waits", () => {
  const text = `
epics:
  - id: E1
    milestones:
      - { id: M1, tasks: [{ id: t1, status: done }, { id: t2, status: failed }, { id: t3 }] }
      - { id: M2, dependencies: [M1], tasks: [{ id: t4 }] }
      - { id: M3 }
  - { id: E2, status: blocked, milestones: [{ id: M4, tasks: [{ id: t5 }] }] }
nodes:
  - { id: p, type: plan, status: blocked }
  - { id: in-plan, parent: p }
  - { id: run, status: in_progress }
  - { id: bad, status: failed }
  - { id: ok, status: done }
  - { id: asks, status: needs_human }
  - { id: after-run, dependencies: [ok, RUN] }
  - { id: after-bad, dependencies: [bad] }
  - { id: after-bad-anyhow, dependencies: [{ id: bad, required_status: terminal }, ok] }
  - { id: after-run-anyhow, dependencies: [{ id: run, required_status: terminal }] }
  - { id: after-m1, dependencies: [M1] }
  - { id: after-m1-anyhow, dependencies: [{ id: m1, required_status: terminal }] }
  - { id: after-m3, dependencies: [M3] }
`;

  test("for a reason that a person understands", () => {
    expect(next(text)).toEqual({
      ready: ["t3", "after-bad-anyhow"],
      waiting: {
        t4: "is in M2, which cannot start: 1 of 3 in M1 failed",
        t5: "is in E2, which is blocked",
        p: "is blocked",
        "in-plan": "is in p, which is blocked",
        asks: "needs an answer",
        "after-run": "waits for run (in_progress)",
        "after-bad": "cannot start: bad failed",
        "after-run-anyhow": "waits for run (in_progress)",
        "after-m1": "cannot start: 1 of 3 in M1 failed",
        "after-m1-anyhow": "waits for M1 (2 of 3 ended)",
        "after-m3": "waits for M3 (open)",
      },
    });
  });

  test("until all in a container are done", () => {
    const done = text
      .replace("t2, status: failed", "t2, status: done")
      .replace("{ id: t3 }", "{ id: t3, status: done }");
    const { ready, waiting } = next(done);
    expect(ready).toEqual(["t4", "after-bad-anyhow", "after-m1", "after-m1-anyhow"]);
    expect(waiting["t5"]).toBeDefined();
  });

  test("for an agent", () => {
    const agents: AgentSettings[] = [
      { name: "coder", kind: "codex", types: ["implementer"], capabilities: ["ts"] },
    ];
    const plan = `
nodes:
  - { id: a, capabilities: [ts] }
  - { id: b, capabilities: [ts, rust] }
  - { id: c, type: plan }
  - { id: d, agent: none }
  - { id: e, exec: [true] }
`;
    expect(next(plan, { matchAgent: (node) => resolveAgent(node, agents) })).toEqual({
      ready: ["a", "e"],
      waiting: {
        b: "no agent has the capabilities ts, rust",
        c: "it has no exec, and no agent of type planner and no default agent is configured",
        d: 'no agent "none" is configured',
      },
    });
  });

  test("and is left out by filters", () => {
    expect(next(text, { filters: { epic: "e1" } })).toEqual({
      ready: ["t3"],
      waiting: { t4: "is in M2, which cannot start: 1 of 3 in M1 failed" },
    });
    expect(next(text, { filters: { milestone: "M4" } }).waiting).toEqual({
      t5: "is in E2, which is blocked",
    });
    expect(next(text, { filters: { status: "needs_human" } })).toEqual({
      ready: [],
      waiting: { asks: "needs an answer" },
    });
    const domains = "nodes:\n  - { id: a, domain: web }\n  - { id: b, domain: db }\n";
    expect(next(domains, { filters: { domain: "db" } }).ready).toEqual(["b"]);
  });
});

describe("who runs a node", () => {
  const agents: AgentSettings[] = [
    { name: "impl", kind: "exec", program: "x", types: ["implementer"], capabilities: ["ts"] },
    { name: "impl-default", kind: "exec", program: "x", types: ["implementer"], default: true },
    {
      name: "checks",
      kind: "exec",
      program: "x",
      types: ["verifier"],
      capabilities: ["ts", "e2e"],
    },
  ];
  const node = { type: "task" as const, capabilities: [] as string[] };

  test.each([
    ["its exec", { ...node, exec: ["true"], agent: "impl" }, "exec"],
    ["the agent it names", { ...node, agent: "checks" }, "checks"],
    ["the default of the right type", node, "impl-default"],
    ["the one with the capabilities", { ...node, capabilities: ["ts"] }, "impl"],
    ["the one for its role", { ...node, role: "verifier" }, "checks"],
    ["the one for its type", { ...node, type: "final_verify" as const }, "checks"],
    ["the default, when no type fits", { ...node, type: "plan" as const }, "impl-default"],
    ["nobody, when the default lacks a capability", { ...node, capabilities: ["e2e"] }, undefined],
  ])("is %s", (_who, one, name) => {
    expect(resolveAgent(one, agents).agent?.name).toBe(name);
  });
});

test("a planner that looks again says the same as one that looks for the first time", () => {
  const change = fc.record({
    n: fc.nat(),
    status: fc.constantFrom(...NODE_STATUSES),
    isNew: fc.boolean(),
  });
  fc.assert(
    fc.property(planText, fc.array(change, { maxLength: 8 }), ({ text, ids }, changes) => {
      fc.pre(ids.length > 0);
      const planner = new Planner();
      let doc = parseRoadmap(text);
      planner.next(doc.nodes);
      for (const [i, { n, status, isNew }] of changes.entries()) {
        const id = ids[n % ids.length] as string;
        doc = applyEdits(doc, [
          isNew
            ? {
                kind: "add",
                node: { id: `new-${i}`, dependencies: id.startsWith("T") ? [id] : [] },
              }
            : { kind: "status", id, status },
        ]);
        expect(planner.next(doc.nodes)).toEqual(planNext(doc.nodes));
      }
    }),
    { numRuns: 150 },
  );
});

test("every ready node has its dependencies done, and every open node is either ready or has a reason", () => {
  fc.assert(
    fc.property(planText, ({ text }) => {
      const doc = parseRoadmap(text);
      const { ready, waiting } = planNext(doc.nodes);
      const hasFailed = (id: string): boolean => {
        const node = findNode(doc, id);
        return node?.status === "failed" || (node?.status === "open" && neverStarts(node));
      };
      const neverStarts = (node: RoadmapNode): boolean => {
        for (let at: RoadmapNode | undefined = node; at !== undefined; ) {
          if (at.dependencies.some(({ id, required }) => required === "done" && hasFailed(id)))
            return true;
          at = at.parent === undefined ? undefined : findNode(doc, at.parent);
        }
        return false;
      };
      for (const node of ready)
        for (const { id, required } of node.dependencies) {
          const isDone = findNode(doc, id)?.status === "done";
          expect(isDone || (required === "terminal" && hasFailed(id))).toBe(true);
        }
      const open = doc.nodes.filter((node) => node.status === "open" && node.type === "task");
      const told = new Set([...ready, ...waiting.map((one) => one.node)]);
      for (const node of open) expect(told).toContain(node);
      expect(ready.length + waiting.length).toBe(told.size);
    }),
    { numRuns: 200 },
  );
});
