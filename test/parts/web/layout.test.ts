/** The drawing of a plan: each node after what it waits for, no two in one place, and quick also with very many nodes. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { BOX, type GraphNode, layOut } from "../../../src/parts/web/graph/layout.ts";
import { timeLimitMs } from "../../support/time-limit.ts";

const random = fc
  .array(fc.array(fc.nat({ max: 60 }), { maxLength: 4 }), { maxLength: 60 })
  .map((lists) =>
    // Only of earlier ones: a plan has no circles.
    lists.map(
      (after, n): GraphNode => ({
        id: `n${n}`,
        after: after.filter((one) => one < n).map((one) => `n${one}`),
      }),
    ),
  );

it("each node stands after all that it waits for, in a place of its own", () => {
  fc.assert(
    fc.property(random, (nodes) => {
      const { places, width, height, edges } = layOut(nodes);
      const seen = new Set<string>();
      for (const { id, after } of nodes) {
        const { x, y } = places.get(id) ?? { x: -1, y: -1 };
        expect(x).toBeGreaterThanOrEqual(0);
        expect(y).toBeGreaterThanOrEqual(0);
        expect(x + BOX.width).toBeLessThanOrEqual(width);
        expect(y + BOX.height).toBeLessThanOrEqual(height);
        expect(seen.has(`${x} ${y}`)).toBe(false);
        seen.add(`${x} ${y}`);
        for (const one of after) expect(places.get(one)?.x ?? 0).toBeLessThan(x);
      }
      expect(edges).toHaveLength(nodes.reduce((sum, { after }) => sum + new Set(after).size, 0));
    }),
  );
});

it("a node that is missing, waits for itself, or stands in a circle is drawn all the same", () => {
  const { places, edges } = layOut([
    { id: "a", after: ["a", "gone", "b"] },
    { id: "b", after: ["a"] },
    { id: "c", after: ["b", "b"] },
  ]);
  expect([...places.keys()].sort()).toEqual(["a", "b", "c"]);
  expect(edges).toEqual([
    ["b", "a"],
    ["a", "b"],
    ["b", "c"],
  ]);
});

it("2,000 nodes in 20 layers, and 2,000 beside each other, are laid out in less than a second", () => {
  const deep = Array.from({ length: 2000 }, (_, n) => ({
    id: `n${n}`,
    after: n < 100 ? [] : [`n${n - 100}`, `n${n - 100 + ((n * 7) % 90)}`, `n${n - 93}`],
  }));
  const wide = Array.from({ length: 2000 }, (_, n) => ({
    id: `w${n}`,
    after: n === 0 ? [] : ["w0"],
  }));
  for (const nodes of [deep, wide]) {
    const beganMs = performance.now();
    const { width, height } = layOut(nodes);
    expect(performance.now() - beganMs).toBeLessThan(timeLimitMs(1000));
    expect(Math.max(width / height, height / width)).toBeLessThan(10);
  }
});
