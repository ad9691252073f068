/** The table of ordinary tasks against a plain map: any sequence of changes, far beyond its first size. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OrdinaryTask, TaskTable } from "../../src/core/task-table.ts";

function before(a: OrdinaryTask, b: OrdinaryTask): number {
  return (
    b.priority - a.priority ||
    a.createdAt - b.createdAt ||
    a.arrivedMs - b.arrivedMs ||
    a.id.length - b.id.length ||
    (a.id < b.id ? -1 : 1)
  );
}

function takeAll(table: TaskTable): OrdinaryTask[] {
  const tasks: OrdinaryTask[] = [];
  for (let row = table.first(); row !== -1; row = table.first()) {
    tasks.push(table.task(row));
    table.remove(row);
  }
  return tasks;
}

const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,12}$/);

describe("the table", () => {
  it("agrees with a map under any sequence of adding, removing, finding and taking", () => {
    const step = fc.record({
      what: fc.constantFrom("add", "add", "add", "remove", "take", "see"),
      id,
      priority: fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }),
      createdAt: fc.constantFrom(0, 1, 1_700_000_000, 253_402_300_799),
      arrivedMs: fc.constantFrom(0, 1_700_000_000_000, 1_700_000_000_000.25),
      attempt: fc.integer({ min: 1, max: 1001 }),
      agentId: fc.constantFrom("exec", "coder", "é"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new TaskTable();
        const model = new Map<string, OrdinaryTask>();
        const seen = new Set<string>();
        for (const { what, ...task } of steps) {
          const key = task.id.toLowerCase();
          const row = table.find(task.id);
          expect(row !== -1).toBe(model.has(key));
          if (what === "add" && row === -1) {
            table.add(task);
            model.set(key, task);
            seen.delete(key);
          } else if (what === "remove" && row !== -1) {
            table.remove(row);
            model.delete(key);
          } else if (what === "take") {
            const best = [...model.values()].toSorted(before)[0];
            const first = table.first();
            expect(first === -1 ? undefined : table.task(first)).toEqual(best);
            if (best !== undefined) {
              table.remove(first);
              model.delete(best.id.toLowerCase());
            }
          } else if (what === "see" && row !== -1) {
            table.markSeen(row, 7);
            seen.add(key);
          }
          expect(table.size).toBe(model.size);
        }
        const unseen = [...model].filter(([key]) => !seen.has(key)).map(([, task]) => task.id);
        expect([...table.unseen(7)].toSorted()).toEqual(unseen.toSorted());
        expect(takeAll(table)).toEqual([...model.values()].toSorted(before));
      }),
    );
  });

  it("keeps its order while it grows and shrinks by thousands", () => {
    const table = new TaskTable();
    const model = new Map<string, OrdinaryTask>();
    let state = 12345;
    const random = (max: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return state % max;
    };
    for (let round = 0; round < 6; round++) {
      for (let n = 0; n < 4000; n++) {
        const task = {
          id: `${"x".repeat(random(40))}-${round}-${n}`,
          attempt: 1,
          priority: random(3),
          createdAt: random(5),
          arrivedMs: random(3),
          agentId: `agent-${random(3)}`,
        };
        table.add(task);
        model.set(task.id, task);
      }
      for (const key of model.keys()) {
        if (random(3) === 0) continue;
        table.remove(table.find(key.toUpperCase()));
        model.delete(key);
      }
    }
    expect(takeAll(table)).toEqual([...model.values()].toSorted(before));
    expect(table.first()).toBe(-1);
  });

  it("takes less than two hundred bytes a task", () => {
    const table = new TaskTable();
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const usedBytes = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const bytesBefore = usedBytes();
    const count = 200_000;
    for (let n = 0; n < count; n++)
      table.add({
        id: `task-${n}`,
        attempt: 1,
        priority: 0,
        createdAt: 0,
        arrivedMs: 0,
        agentId: "exec",
      });
    expect(table.size).toBe(count);
    expect((usedBytes() - bytesBefore) / count).toBeLessThan(200);
  });
});
