/** Times in records: the text is that of Date, remembered or not. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isoTime } from "../../src/core/iso-time.ts";

describe("isoTime", () => {
  it("gives the text of Date for any moment, asked for once or again", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1e14, max: 1e14 }), { minLength: 1 }), (moments) => {
        for (const ms of [...moments, ...moments])
          expect(isoTime(ms)).toBe(new Date(ms).toISOString());
      }),
    );
  });

  it("drops fractions", () => {
    expect(isoTime(1.9)).toBe("1970-01-01T00:00:00.001Z");
    expect(isoTime(1.2)).toBe("1970-01-01T00:00:00.001Z");
  });

  it("throws for what no date can show", () => {
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
    expect(() => isoTime(9e15)).toThrow(RangeError);
  });
});
