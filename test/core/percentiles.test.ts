/** Percentiles from bins: beside exact ones, over many shapes of durations. */
import { describe, expect, it } from "vitest";
import {
  addDuration,
  type DurationBins,
  durationBinsOf,
  percentileOf,
} from "../../src/core/percentiles.ts";
import { seededRandom } from "../support/seeded-random.ts";

const SEED = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
const ERROR_MAX = 0.02;

function binsOf(values: readonly number[]): DurationBins {
  const bins: DurationBins = {};
  for (const ms of values) addDuration(bins, ms);
  return bins;
}

/** The value at the nearest rank. */
function exact(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

describe("percentiles", () => {
  it(`are at most 2 % off the exact ones, whatever the durations (seed ${SEED})`, () => {
    const random = seededRandom(SEED);
    const shapes: ((n: number) => number)[] = [
      () => random.below(1000),
      () => Math.exp(random() * 15),
      () => (random() < 0.9 ? 20 + random() : 60_000 * random()),
      (n) => n,
      () => 518,
      () => random() / 10,
    ];
    for (const shape of shapes) {
      for (const count of [1, 2, 3, 20, 1000]) {
        const values = Array.from({ length: count }, (_, n) => shape(n));
        const bins = binsOf(values);
        for (const share of [0, 0.01, 0.5, 0.95, 0.99, 1]) {
          const wanted = exact(values, share);
          const found = percentileOf(bins, share) ?? Number.NaN;
          expect(Math.abs(found - wanted)).toBeLessThanOrEqual(ERROR_MAX * wanted + 0.001);
        }
      }
    }
  });

  it("stay below the greatest value, and are null without values", () => {
    expect(percentileOf(binsOf([518, 518, 518]), 0.95, 518)).toBeLessThanOrEqual(518);
    expect(percentileOf({}, 0.5)).toBeNull();
    expect(percentileOf(binsOf([0, 0]), 0.5)).toBe(0);
  });

  it("of two periods together are those of their bins added", () => {
    const first = Array.from({ length: 500 }, (_, n) => n);
    const second = Array.from({ length: 500 }, (_, n) => 10_000 + n);
    const merged = { ...binsOf(first) };
    for (const [bin, count] of Object.entries(binsOf(second)))
      merged[bin] = (merged[bin] ?? 0) + count;
    expect(merged).toEqual(binsOf([...first, ...second]));
  });

  it("need few bins, however long a duration claims to be", () => {
    const bins = binsOf([0, 1e-300, 1e-9, 1, 1e15, Number.MAX_VALUE]);
    expect(Object.keys(bins)).toHaveLength(3);
  });

  it("leave out what a broken document calls a bin", () => {
    const bins = { 10: 2, "-3": 1, 1e9: 5, x: 1, 7: "2", 8: -1, 9: 0.5, " 5": 1 };
    expect(durationBinsOf(bins)).toEqual({ 10: 2, "-3": 1 });
    expect(durationBinsOf(null)).toEqual({});
    expect(durationBinsOf("nonsense")).toEqual({});
  });
});
