/** When a dead worker is replaced. */
import { expect, it } from "vitest";
import {
  BREAKER_DEATHS,
  type Death,
  RestartPolicy,
} from "../../../src/supervisor/pool/restart-policy.ts";

function delaysAfter(deaths: readonly Death[]): { delays: number[]; policy: RestartPolicy } {
  const policy = new RestartPolicy();
  return { delays: deaths.map((death) => policy.onDeath(death)), policy };
}

it("a worker that ends without having done anything is replaced ever later, until the breaker opens", () => {
  const { delays, policy } = delaysAfter(Array<Death>(BREAKER_DEATHS).fill("fruitless"));
  expect(delays).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(policy.isBreakerOpen).toBe(true);
});

it("a worker that is killed again and again at its work is replaced after a second, and opens no breaker", () => {
  const { delays, policy } = delaysAfter(Array<Death>(20).fill("killed"));
  expect(delays).toEqual([0, ...Array<number>(19).fill(1000)]);
  expect(policy.isBreakerOpen).toBe(false);
});

it("a worker that was healthy is replaced at once", () => {
  expect(delaysAfter(["fruitless", "killed", "healthy", "fruitless"]).delays).toEqual([
    0, 1000, 0, 0,
  ]);
});

it("progress makes the next death the first one", () => {
  const { policy } = delaysAfter(["killed", "fruitless", "fruitless"]);
  policy.onProgress();
  expect(policy.onDeath("killed")).toBe(0);
});
