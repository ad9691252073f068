import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backlog } from "../../src/core/backlog.ts";
import { compareTasks, readLane, type WaitingTask } from "../../src/core/waiting-task.ts";

function task(id: string, more: Partial<WaitingTask> = {}): WaitingTask {
  return {
    id,
    file: `${id}.json`,
    tray: "inbox",
    attempt: 1,
    priority: 0,
    createdAt: 0,
    arrivedMs: 0,
    agentId: "exec",
    isSelected: false,
    ...more,
  };
}

function takeAll(backlog: Backlog): string[] {
  const ids: string[] = [];
  for (let next = backlog.takeBest(); next !== undefined; next = backlog.takeBest())
    ids.push(next.id);
  return ids;
}

describe("the backlog", () => {
  it("counts a task that is held at a gate as one that waits for its gate, not for its time", () => {
    const backlog = new Backlog();
    const count = () => [backlog.timedCount, backlog.count("delayed"), backlog.count("runnable")];
    backlog.add(task("late", { dueMs: 1000 }), 0, 0);
    for (const id of ["a", "b"])
      backlog.add(task(id, { tray: "processing", gate: "cluster-gpu", dueMs: 1000 }), 0, 0);
    expect(count()).toEqual([1, 3, 0]);
    backlog.remove("a");
    expect(count()).toEqual([1, 2, 0]);
    backlog.promoteDue(0, 1000);
    expect(count()).toEqual([0, 0, 2]);
    backlog.remove("b");
    expect(count()).toEqual([0, 0, 1]);
  });

  it("gives tasks by priority, then age, then arrival, then sequence, then id, whatever the order they came in", () => {
    const arbitrary = fc.uniqueArray(
      fc.record({
        id: fc.stringMatching(/^[a-z0-9]{1,6}$/),
        priority: fc.integer({ min: -2, max: 2 }),
        createdAt: fc.integer({ min: 0, max: 3 }),
        arrivedMs: fc.constantFrom(0, 0.25, 0.5),
        sequence: fc.constantFrom(0, -1, 1),
      }),
      { selector: (t) => t.id },
    );
    fc.assert(
      fc.property(arbitrary, (facts) => {
        const backlog = new Backlog();
        const tasks = facts.map(({ id, sequence, ...more }) =>
          task(id, { ...more, ...(sequence === 0 ? {} : { sequence }) }),
        );
        for (const t of tasks) backlog.add(t, 0, 0);
        expect(takeAll(backlog)).toEqual(tasks.toSorted(compareTasks).map((t) => t.id));
        expect(backlog.size).toBe(0);
      }),
    );
  });

  it("agrees with a plain list under any sequence of adding, removing and taking", () => {
    const step = fc.record({
      what: fc.constantFrom("add", "remove", "take"),
      id: fc.stringMatching(/^[a-d]{1,2}$/),
      priority: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const backlog = new Backlog();
        const model = new Map<string, WaitingTask>();
        for (const { what, id, priority } of steps) {
          if (what === "add") {
            backlog.add(task(id, { priority }), 0, 0);
            model.set(id, task(id, { priority }));
          } else if (what === "remove") {
            backlog.remove(id);
            model.delete(id);
          } else {
            const best = [...model.values()].sort(compareTasks)[0];
            expect(backlog.takeBest()?.id).toBe(best?.id);
            if (best !== undefined) model.delete(best.id);
          }
          expect(backlog.size).toBe(model.size);
          expect(backlog.count("runnable")).toBe(model.size);
        }
      }),
    );
  });

  it("holds ids without regard to case", () => {
    const backlog = new Backlog();
    backlog.add(task("Report"), 0, 0);
    expect(backlog.get("rePORT")?.id).toBe("Report");
  });

  it("keeps a task back until its time, by the wall clock for people and by the monotonic one for a backoff", () => {
    const backlog = new Backlog();
    expect(backlog.add(task("person", { notBeforeMs: 5000 }), 1000, 0)).toBe("delayed");
    expect(backlog.add(task("retry", { dueMs: 70 }), 1000, 50)).toBe("delayed");
    expect(backlog.promoteDue(1000, 50)).toBe(20);
    expect(takeAll(backlog)).toEqual([]);
    expect(backlog.promoteDue(1000, 70)).toBe(4000);
    expect(takeAll(backlog)).toEqual(["retry"]);
    expect(backlog.promoteDue(5000, 70)).toBeUndefined();
    expect(takeAll(backlog)).toEqual(["person"]);
  });

  it("keeps a task back until both of its times, when a retry has a not_before, too", () => {
    const backlog = new Backlog();
    backlog.add(task("a", { notBeforeMs: 5000, dueMs: 70 }), 1000, 0);
    backlog.add(task("b", { notBeforeMs: 2000, dueMs: 90 }), 1000, 0);
    expect(backlog.promoteDue(1000, 80)).toBe(1000);
    expect(backlog.promoteDue(2000, 80)).toBe(10);
    expect(takeAll(backlog)).toEqual([]);
    expect(backlog.promoteDue(2000, 90)).toBe(3000);
    expect(takeAll(backlog)).toEqual(["b"]);
    expect(backlog.promoteDue(5000, 90)).toBeUndefined();
    expect(takeAll(backlog)).toEqual(["a"]);
  });

  it("keeps a task back until the last of its dependencies has completed", () => {
    const backlog = new Backlog();
    expect(backlog.add(task("c", { unmet: ["a", "b"] }), 0, 0)).toBe("blocked");
    expect([...backlog.dependencies()].sort()).toEqual(["a", "b"]);
    expect(["a", "A", "c"].map((id) => backlog.isAwaited(id))).toEqual([true, true, false]);
    expect(backlog.resolveDependency("a")).toBe(0);
    expect(backlog.isAwaited("a")).toBe(false);
    expect(takeAll(backlog)).toEqual([]);
    expect(backlog.resolveDependency("b")).toBe(1);
    expect(takeAll(backlog)).toEqual(["c"]);
    expect([...backlog.dependencies()]).toEqual([]);
  });

  it("needs what a task depends on, met or not, until the last one of it is chosen or removed", () => {
    const backlog = new Backlog();
    backlog.add(task("c", { dependencies: ["Met", "b"], unmet: ["b"] }), 0, 0);
    backlog.add(task("d", { dependencies: ["met"] }), 0, 0);
    const isNeeded = (): boolean[] => ["MET", "b", "c"].map((id) => backlog.isNeeded(id));
    expect(isNeeded()).toEqual([true, true, false]);
    expect(takeAll(backlog)).toEqual(["d"]);
    backlog.resolveDependency("b");
    expect(isNeeded()).toEqual([true, true, false]);
    backlog.add(task("c", { dependencies: ["met"] }), 0, 0);
    expect(isNeeded()).toEqual([true, false, false]);
    expect(takeAll(backlog)).toEqual(["c"]);
    expect(isNeeded()).toEqual([false, false, false]);
  });

  it("compares dependencies without case", () => {
    const backlog = new Backlog();
    backlog.add(task("b", { unmet: ["Job"] }), 0, 0);
    backlog.add(task("c", { unmet: ["jOB"] }), 0, 0);
    expect([...backlog.dependencies()]).toEqual(["Job"]);
    backlog.remove("b");
    expect(backlog.resolveDependency("job")).toBe(1);
    expect(takeAll(backlog)).toEqual(["c"]);
  });

  it("a removed task is not waited for any more, and does not come back when its dependency completes", () => {
    const backlog = new Backlog();
    backlog.add(task("b", { unmet: ["a"] }), 0, 0);
    backlog.remove("b");
    expect([...backlog.dependencies()]).toEqual([]);
    expect(backlog.resolveDependency("a")).toBe(0);
    expect(backlog.size).toBe(0);
  });

  it("keeps a task back that no agent fits", () => {
    const backlog = new Backlog();
    expect(backlog.add(task("x", { agentId: undefined, reason: "no agent" }), 0, 0)).toBe(
      "unmatched",
    );
    expect(takeAll(backlog)).toEqual([]);
    expect(backlog.count("unmatched")).toBe(1);
    expect(backlog.get("X")?.reason).toBe("no agent");
  });

  it("gives only planners while a plan is made, and everything in order afterwards", () => {
    const backlog = new Backlog();
    backlog.add(task("work", { priority: 9 }), 0, 0);
    backlog.add(task("plan", { isPlanner: true }), 0, 0);
    expect(backlog.takeBest("planners")?.id).toBe("plan");
    expect(backlog.takeBest("planners")).toBeUndefined();
    backlog.add(task("plan-2", { isPlanner: true, priority: 99 }), 0, 0);
    expect(takeAll(backlog)).toEqual(["plan-2", "work"]);
  });

  it("finds a task behind any number of tasks of an agent that may not start, and asks once for each agent", () => {
    const backlog = new Backlog();
    for (let index = 0; index < 20_000; index++)
      backlog.add(task(`closed-${index}`, { agentId: "coder", priority: 9 }), 0, 0);
    backlog.add(task("free"), 0, 0);
    const asked: string[] = [];
    const mayStart = (lane: string): boolean => {
      asked.push(lane);
      return lane !== "coder";
    };
    expect(backlog.takeBest("all", mayStart)?.id).toBe("free");
    expect(backlog.takeBest("all", mayStart)).toBeUndefined();
    expect(asked).toEqual(["coder", "exec", "coder"]);
    expect(backlog.count("runnable")).toBe(20_000);
    expect(backlog.takeBest()?.id).toBe("closed-0");
  });

  it("keeps what waits at a gate apart from what waits for its agent", () => {
    const backlog = new Backlog();
    const held = { tray: "processing", file: "held.json", gate: "quota-max" } as const;
    backlog.add(task("held", { agentId: "coder", priority: 9, ...held }), 0, 0);
    backlog.add(task("new", { agentId: "coder" }), 0, 0);
    expect(backlog.takeBest("all", (lane) => lane !== "~quota-max coder")?.id).toBe("new");
    expect(backlog.takeBest()?.id).toBe("held");
  });

  it("gives a lane of its own to a group that is limited, and to no other group", () => {
    const backlog = new Backlog((group) => group === "x");
    for (let index = 0; index < 1000; index++)
      backlog.add(task(`label-${index}`, { group: `label-${index}` }), 0, 0);
    backlog.add(task("first", { group: "x", priority: 9 }), 0, 0);
    const asked: string[] = [];
    const mayStart = (lane: string): boolean => {
      asked.push(lane);
      return readLane(lane).group === undefined;
    };
    expect(backlog.takeBest("all", mayStart)?.id).toBe("label-0");
    expect(asked.map(readLane)).toMatchObject([
      { agent: "exec", hasPlaces: false },
      { agent: "exec", group: "x", hasPlaces: false },
    ]);
    expect(backlog.takeBest()?.id).toBe("first");
  });

  it("counts what waits of each limited group and limit, without what has its places", () => {
    const backlog = new Backlog((group) => group === "x");
    const add = (id: string, more: Partial<WaitingTask>) => backlog.add(task(id, more), 0, 0);
    add("a", { group: "x" });
    add("b", { group: "x", needs: "2 db", dueMs: 1000 });
    add("c", { group: "x", unmet: ["a"], dependencies: ["a"] });
    add("gate", { group: "x", tray: "processing", gate: "quota-a" });
    add("again", { group: "x", tray: "processing", dueMs: 1000 });
    add("label", { group: "y", needs: "1 db" });
    add("plain", {});
    const counts = () => [...backlog.limited()].map((one) => [one.group, one.limits, one.count]);
    expect(counts()).toEqual([
      ["x", [], 3],
      ["x", ["db"], 1],
      ["", ["db"], 1],
    ]);
    backlog.promoteDue(0, 1000);
    backlog.resolveDependency("a");
    expect(counts()[0]).toEqual(["x", [], 3]);
    for (const id of ["a", "b", "c", "gate", "label"]) backlog.remove(id);
    expect(counts()).toEqual([]);
  });

  it("a scan that did not see a task names it, others not", () => {
    const backlog = new Backlog();
    backlog.add(task("gone"), 0, 0);
    backlog.add(task("there"), 0, 0);
    backlog.add(task("particular", { isPlanner: true }), 0, 0);
    expect(backlog.see("there", "there.json", 1)).toBe(true);
    expect(backlog.see("gone", "gone.ndjson", 1)).toBe(false);
    expect(backlog.see("GONE", "GONE.json", 1)).toBe(false);
    expect([...backlog.unseen(1)].map((t) => t.file)).toEqual(["gone.json", "particular.json"]);
  });
});
