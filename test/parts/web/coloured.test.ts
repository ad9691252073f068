/** Colours of logs become names, and nothing else of an escape sequence comes through. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { colouredLine } from "../../../src/parts/web/coloured.ts";

it.each([
  ["plain", "plain"],
  ["\u001b[31mred\u001b[0m", [["red", "red"]]],
  [
    "a\u001b[1;32mb\u001b[22mc\u001b[39md",
    [
      ["a", ""],
      ["b", "green bold"],
      ["c", "green"],
      ["d", ""],
    ],
  ],
  [
    "\u001b[2;4mx\u001b[24my",
    [
      ["x", "dim under"],
      ["y", "dim"],
    ],
  ],
  ["\u001b[38;5;196mx", "x"],
  ["\u001b[38;2;1;2;3;31mx", [["x", "red"]]],
  ["\u001b[8;5;41mx", "x"],
  ["\u001b[97mx", [["x", "white"]]],
])("%j", (raw, line) => {
  expect(colouredLine(raw)).toEqual(line);
});

it("of any text only plain text and known names are left", () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom("\u001b[31m", "\u001b]52;c;aGk=\u0007", "\u009b31m", "<b>", "\u202e"),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const line = colouredLine(pieces.join(""));
      for (const [text, names] of typeof line === "string" ? [[line, ""]] : line) {
        expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(names).toMatch(/^(?:\w+(?: \w+)*)?$/);
      }
    }),
  );
});
