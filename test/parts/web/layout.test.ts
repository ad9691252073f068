/** The drawing of a plan: each node after what it waits for, no two in one place, and quick also with very many nodes. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { edgePaths } from "../../../src/parts/web/graph/edge-path.ts";
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

it("each line ends at its boxes, and passes none on its way", () => {
  fc.assert(
    fc.property(random, (nodes) => {
      const layout = layOut(nodes);
      const { places, edges } = layout;
      const paths = edgePaths(layout);
      expect(paths).toHaveLength(edges.length);
      for (const [at, [from, to]] of edges.entries()) {
        const [a, b] = [places.get(from), places.get(to)];
        if (a === undefined || b === undefined) throw new Error("a line leads nowhere");
        const begin = `M${a.x + BOX.width} ${a.y + BOX.height / 2}`;
        const path = paths[at] ?? "";
        expect(path.startsWith(begin)).toBe(true);
        let [x, y] = [a.x + BOX.width, a.y + BOX.height / 2];
        for (const [, name, words = ""] of path.slice(begin.length).matchAll(/([CH])([^CH]*)/g)) {
          const numbers = words.split(" ").map(Number);
          const nextX = numbers.at(-2) ?? numbers[0] ?? 0;
          if (name === "H") {
            const right = Number(words);
            for (const box of places.values()) {
              const isBeside = box.x + BOX.width <= x || box.x >= right;
              const isClear = box.y + BOX.height < y || box.y > y;
              expect(isBeside || isClear, `${from} to ${to} over ${box.x} ${box.y}`).toBe(true);
            }
            x = right;
          } else {
            // Between two columns there is no box.
            for (const box of places.values())
              expect(box.x + BOX.width <= x || box.x >= nextX).toBe(true);
            [x, y] = [nextX, numbers.at(-1) ?? 0];
          }
        }
        expect([x, y]).toEqual([b.x, b.y + BOX.height / 2]);
      }
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
    const layout = layOut(nodes);
    const bytes = edgePaths(layout).join("").length;
    expect(performance.now() - beganMs).toBeLessThan(timeLimitMs(1000));
    const { width, height, edges } = layout;
    expect(bytes / edges.length).toBeLessThan(400);
    expect(Math.max(width / height, height / width)).toBeLessThan(10);
  }
});
