/** The timeline of a task: the latest events first, across rotations and damaged lines, in pages. */
import fs from "node:fs";
import { expect, test } from "vitest";
import { timelineOf } from "../../src/journal/timeline.ts";
import { newTree } from "../view/many-files.ts";

const line = (task: string, n: number, more: object = {}): string =>
  `${JSON.stringify({ event: "started", task_id: task, n, ...more })}\n`;

test("pages of a task's events have each of them once, the latest first, and go on before the rotation", () => {
  const tree = newTree();
  const pad = { message: "x".repeat(3000) };
  const write = (path: string, from: number, to: number): void => {
    let text = "";
    for (let n = from; n < to; n++)
      text += `${line("a", n)}${line("b", n, pad)}${line("c", n, { message: 'a, "a"' })}torn "a"\n`;
    // A line longer than a piece is passed over, and what stands before and behind it is not.
    fs.writeFileSync(
      path,
      `${text}"a"${"y".repeat(600_000)}\n${line("a", to)}{"task_id":"a","n":"torn`,
    );
  };
  write(tree.events.replace(/\.jsonl$/, ".2026-01-01T00-00-00-000Z.jsonl"), 0, 400);
  write(tree.events, 500, 900);
  const expected = [
    ...Array.from({ length: 401 }, (_, n) => 900 - n),
    ...Array.from({ length: 401 }, (_, n) => 400 - n),
  ];
  for (const limit of [1000, 100, 7]) {
    const seen: unknown[] = [];
    let after: string | undefined;
    do {
      const page = timelineOf(tree.events, "a", limit, after);
      expect(page.events.length).toBeLessThanOrEqual(limit);
      seen.push(...page.events.map((event) => event["n"]));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(expected);
  }
});

test("a page goes on in the same file when the journal was rotated meanwhile", () => {
  const tree = newTree();
  fs.writeFileSync(tree.events, line("a", 1) + line("a", 2) + line("a", 3));
  const { next } = timelineOf(tree.events, "a", 1);
  fs.renameSync(tree.events, tree.events.replace(/\.jsonl$/, ".2026-01-01T00-00-00-000Z.jsonl"));
  fs.writeFileSync(tree.events, line("a", 4));
  expect(timelineOf(tree.events, "a", 5, next).events.map(({ n }) => n)).toEqual([2, 1]);
});

test("what came before a task's first event is not looked for", () => {
  const tree = newTree();
  fs.writeFileSync(
    tree.events.replace(/\.jsonl$/, ".2026-01-01T00-00-00-000Z.jsonl"),
    line("a", 0),
  );
  fs.writeFileSync(tree.events, line("a", 1, { event: "selected", attempt: 1 }) + line("a", 2));
  expect(timelineOf(tree.events, "a", 9).events.map(({ n }) => n)).toEqual([2, 1]);
});
