/** The words of a line that are new or gone. */
import { expect, test } from "vitest";
import { changedWords, type Spans } from "../../src/text/changed-words.ts";

const at = (text: string, spans: Spans): string[] =>
  spans.map(([from, to]) => text.slice(from, to));
const marked = (old: string, now: string): [string[], string[]] => {
  const [a, b] = changedWords(old, now);
  return [at(old, a), at(now, b)];
};

test.each([
  ["const a = 1;", "const b = 1;", [["a"], ["b"]]],
  ["f(a, b, c)", "f(a, x, b, c)", [[], ["x, "]]],
  [
    "if (a) return left + right;",
    "if (b) return left - right;",
    [
      ["a", "+"],
      ["b", "-"],
    ],
  ],
  ["  same words here", "    same words here", [["  "], ["    "]]],
  ["über 🙂 alles klar", "über 🙃 alles klar", [["🙂"], ["🙃"]]],
  ["nothing in common", "0123456789", [[], []]],
  ["", "new", [[], []]],
])("%j and %j", (old, now, marks) => expect(marked(old, now)).toEqual(marks));

test("many words take a bounded time, and the middle counts as changed", () => {
  const words = (n: number): string => Array.from({ length: 500 }, (_, i) => `w${i * n}`).join(" ");
  const head = "the same words ".repeat(400);
  const began = performance.now();
  const [old] = marked(head + words(3), head + words(7));
  expect(performance.now() - began).toBeLessThan(500);
  expect(old).toHaveLength(1);
});
