import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  afterStart,
  allows,
  emptyUs,
  parseRate,
  type Rate,
  waitMsOf,
} from "../../src/core/rate.ts";

const rate = (text: string, burst = 1): Rate => {
  const found = parseRate(text, burst);
  if (found === undefined) throw new Error(text);
  return found;
};

describe("a rate", () => {
  it("is a number for a second, minute, hour or day", () => {
    expect(rate("60/min")).toMatchObject({ intervalUs: 1_000_000, isLong: false });
    expect(rate("7/s").intervalUs).toBe(142_858);
    expect(rate("1/d")).toMatchObject({ intervalUs: 86_400_000_000, isLong: true });
    for (const text of [
      "",
      "60",
      "60/m",
      "0/s",
      "-1/s",
      "1.5/s",
      "1/s ",
      "1/min/s",
      "9999999999/s",
    ])
      expect(parseRate(text), text).toBeUndefined();
  });

  it("allows in no span of time more than the burst and what it gives in that span", () => {
    const gap = fc.oneof(fc.nat(20_000), fc.nat(3_000_000), fc.constant(0));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(gap, { maxLength: 120 }),
        (count, burst, gaps) => {
          const one = rate(`${count}/s`, burst);
          const starts: number[] = [];
          let nowUs = 5_000_000;
          let fullUs = 0;
          for (const us of gaps) {
            nowUs += us;
            if (!allows(one, fullUs, nowUs)) {
              expect(waitMsOf(one, fullUs, nowUs)).toBeGreaterThan(0);
              continue;
            }
            expect(waitMsOf(one, fullUs, nowUs)).toBe(0);
            fullUs = afterStart(one, fullUs, nowUs);
            starts.push(nowUs);
          }
          for (const [first, from] of starts.entries())
            for (let last = first; last < starts.length; last++) {
              const spanS = ((starts[last] ?? 0) - from) / 1e6;
              expect(last - first + 1).toBeLessThanOrEqual(burst + count * spanS + 1e-6);
            }
        },
      ),
    );
  });

  it("after whose burst a start comes in each interval; an empty bucket waits for one", () => {
    const one = rate("10/s", 3);
    let fullUs = 0;
    for (let n = 0; n < 3; n++) {
      expect(allows(one, fullUs, 1000)).toBe(true);
      fullUs = afterStart(one, fullUs, 1000);
    }
    expect(allows(one, fullUs, 100_999)).toBe(false);
    expect(allows(one, fullUs, 101_000)).toBe(true);
    expect(waitMsOf(one, emptyUs(one, 0), 0)).toBe(100);
  });
});
