/** A sample of the random histories of landings: `npm run test:landing` plays a thousand. */
import { expect, test } from "vitest";
import { playOnce } from "./histories/run.ts";

test("in random histories nothing is lost, nothing lands unchecked, and nothing lands twice", async () => {
  const seed = Number(process.env["MAILCHUTE_LANDING_SEED"] ?? Date.now() % 2 ** 31);
  const results = await Promise.all([0, 1, 2].map((more) => playOnce(seed + more, {})));
  expect(
    results.flatMap(({ problems }) => problems),
    `seed ${seed}`,
  ).toEqual([]);
});
