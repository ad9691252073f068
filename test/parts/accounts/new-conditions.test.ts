/** A condition that comes and goes is news once. */
import { expect, it } from "vitest";
import { NewConditions } from "../../../src/parts/accounts/new-conditions.ts";

it("tells of a condition once, until it has been gone for the whole time", () => {
  const standing = new NewConditions(1000);
  const news = (keys: string[], nowMs: number): string[] => [
    ...standing.news(new Set(keys), nowMs),
  ];
  expect(news(["a"], 0)).toEqual(["a"]);
  expect(news(["a", "b"], 5000)).toEqual(["b"]);
  // It comes and goes.
  expect(news(["b"], 6000)).toEqual([]);
  expect(news(["a", "b"], 6999)).toEqual([]);
  expect(news(["b"], 7000)).toEqual([]);
  // A look that comes late does not make it look gone.
  expect(news(["b"], 90_000)).toEqual([]);
  expect(news(["a", "b"], 91_000)).toEqual(["a"]);
});
