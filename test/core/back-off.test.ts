/** How long a look rests. */
import { expect, it } from "vitest";
import { backOffByCost } from "../../src/core/back-off.ts";

const RULE = { times: 20, mostMs: 3000 };

it("a look rests for a multiple of its time", () => {
  expect(backOffByCost(0, RULE)).toBe(0);
  expect(backOffByCost(15, RULE)).toBe(300);
});

it("a look in which the process was stopped for hours does not rest for days", () => {
  expect(backOffByCost(3_600_000, RULE)).toBe(3000);
});
