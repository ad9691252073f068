/** Text for people: escaping, widths, times. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ago,
  countText,
  cut,
  duration,
  safe,
  safeOutput,
  table,
  widthOf,
  wrap,
} from "../../src/text/render.ts";

test("text from files shows control characters, bidi marks and newlines as escapes", () => {
  expect(safe("a\n\t\u001b[31m\u202e\u2066\u0085b")).toBe(
    "a\\n\\t\\x1b[31m\\u{202e}\\u{2066}\\x85b",
  );
  expect(safe("plain ümläut 日本 👍")).toBe("plain ümläut 日本 👍");
  expect(safe({ a: 1 })).toBe('{"a":1}');
  expect(safe("\ud800")).toBe("\\u{d800}");
});

test("whatever the text, what is printed holds no control or format character", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      (text) => !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(safe(text)),
    ),
  );
});

test("a program's colours and lines pass on a terminal, other steering does not", () => {
  expect(safeOutput("\u001b[31mred\u001b[0m\r\n\u001b]0;title\u0007\u001b[2J")).toBe(
    "\u001b[31mred\u001b[0m\r\n\\x1b]0;title\\x07\\x1b[2J",
  );
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [3250, "3.2 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [250_000, "4 min 10 s"],
  [7_500_000, "2 h 5 min"],
  [90_000_000, "1 d 1 h"],
  [-1000, "-1 s"],
  [Number.NaN, "?"],
])("%d ms are %j", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test("times are told from now, in both directions", () => {
  expect(ago(0, 3000)).toBe("3 s ago");
  expect(ago(3000, 3000)).toBe("just now");
  expect(ago(303_000, 3000)).toBe("in 5 min");
});

test.each([
  [2 * 3_600_000 - 200, "in 2 h"],
  [3_600_000 - 200, "in 1 h"],
  [24 * 3_600_000 - 200, "in 1 d"],
  [80 * 60_000, "in 1 h"],
  [40 * 60_000, "in 40 min"],
  [1200, "in 1 s"],
])("a time %d ms ahead is %j: rounded to the nearest", (ms, text) => {
  expect(ago(ms, 0)).toBe(text);
});

test("a count that stopped at its bound says so", () => {
  expect(countText(100_000, false)).toBe("100,000+");
});

test("cutting counts cells, not characters", () => {
  expect(widthOf("日本")).toBe(4);
  expect(cut("日本語です", 5)).toBe("日本…");
  expect(cut("short", 5)).toBe("short");
});

test("a character takes as many cells alone as beside one that is counted by itself", () => {
  for (let code = 0; code <= 0xffff; code++) {
    const c = String.fromCharCode(code);
    if (widthOf(c) !== widthOf(`${c}日`) - 2) expect.fail(code.toString(16));
  }
});

test("a table fits its width as long as a column may be cut", () => {
  const columns = [{ title: "ID" }, { title: "WHAT", min: 10 }];
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,20}$/), fc.stringMatching(/^[a-z ]{0,200}$/)), {
        maxLength: 5,
      }),
      (rows) => table(columns, rows, 80, false).every((line) => widthOf(line) <= 80),
    ),
  );
});

test("wrapped prose loses no word and keeps to its width", () => {
  const words = "the quick brown fox jumps over the lazy dog";
  const lines = wrap(words, 12, 2);
  expect(lines.every((line) => line.length <= 12)).toBe(true);
  expect(lines.map((line) => line.trim()).join(" ")).toBe(words);
});
