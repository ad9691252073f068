/** How long a look rests. */
import { expect, it } from "vitest";
import { restAfter } from "../../src/core/rest.ts";

const RULE = { times: 20, mostMs: 3000 };

it("a look rests for a multiple of its time", () => {
  expect(restAfter(0, RULE)).toBe(0);
  expect(restAfter(15, RULE)).toBe(300);
});

it("a look in which the process was stopped for hours does not rest for days", () => {
  expect(restAfter(3_600_000, RULE)).toBe(3000);
});
