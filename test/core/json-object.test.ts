/** Text that should be a JSON object. */
import { expect, it } from "vitest";
import { parseObject } from "../../src/core/json-object.ts";
import { RECORD_DEPTH_MAX } from "../../src/core/limits.ts";

const nested = (depth: number): string => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;

it("an object that nests too deep to be written again is none", () => {
  const deepest = parseObject(nested(RECORD_DEPTH_MAX - 1));
  expect(JSON.stringify(deepest)).toBe(nested(RECORD_DEPTH_MAX - 1));
  for (const depth of [RECORD_DEPTH_MAX, 100_000])
    expect(parseObject(nested(depth))).toBeUndefined();
});
