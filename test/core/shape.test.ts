/** Shapes: what a document lacks is filled in or left out, and without what it needs there is none. */
import { expect, it } from "vitest";
import {
  goodOf,
  having,
  ifThere,
  isCount,
  isFlag,
  isNumber,
  isText,
  listOf,
  oneOf,
  optional,
  orElse,
  orNull,
  recordOf,
  shape,
} from "../../src/core/shape.ts";

const read = shape({
  v: oneOf(1),
  id: isText,
  paused: orElse(isFlag, false),
  note: optional(isText),
  items: goodOf(having({ n: isNumber, why: optional(isText) })),
});
const GOOD = { v: 1, id: "a", paused: true, note: "b", items: [{ n: 1 }] };

it("a good document is returned as it is, with members of later versions", () => {
  const found = { ...GOOD, later: { more: true } };
  expect(read(found)).toBe(found);
});

it("without a member that it needs there is no document", () => {
  for (const wrong of [{ v: 2 }, { v: "1" }, { id: 7 }, { id: undefined }])
    expect(read({ ...GOOD, ...wrong }), JSON.stringify(wrong)).toBeUndefined();
});

it("a wrong member gets its first value, is left out, or loses its wrong items; what was read stays as it is", () => {
  const found = { ...GOOD, paused: "no", note: 5, items: [{ n: "1" }, { n: 2 }, { n: 3, why: 4 }] };
  const before = structuredClone(found);
  expect(read(found)).toEqual({ v: 1, id: "a", paused: false, items: [{ n: 2 }] });
  expect(found).toEqual(before);
  expect(read({ v: 1, id: "a", items: 7 })).toEqual({ v: 1, id: "a", paused: false });
});

it.each<[string, (value: unknown) => boolean, unknown[], unknown[]]>([
  ["count", isCount, [0, 7], [-1, 0.5, "7", Number.NaN]],
  ["number", isNumber, [-1.5, 0], [Number.NaN, Number.POSITIVE_INFINITY, "1", null]],
  ["word", oneOf("a", "b"), ["a"], ["c", 1, undefined]],
  ["text or null", orNull(isText), ["", null], [undefined, 1]],
  ["text if there", ifThere(isText), ["", undefined], [null, 1]],
  ["list", listOf(isText), [[], ["a"]], [["a", 1], {}, "a", null]],
  ["record", recordOf(isCount), [{}, { a: 1 }], [{ a: -1 }, [1], null]],
  [
    "object",
    having({ a: isText, b: optional(isText) }),
    [{ a: "" }, { a: "", b: "" }],
    [{}, { a: "", b: 1 }, [], null],
  ],
])("a %s is told from other values", (_, is, good, bad) => {
  for (const value of good) expect(is(value), JSON.stringify(value)).toBe(true);
  for (const value of bad) expect(is(value), JSON.stringify(value)).toBe(false);
});
