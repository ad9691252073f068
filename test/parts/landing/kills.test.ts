/** Samples of the walk over all git calls of a landing; `every-kill.test.ts` takes every call. */
import { expect, test } from "vitest";
import { seededRandom } from "../../support/seeded-random.ts";
import { MOMENTS } from "../worktrees/kill-walk.ts";
import { walkLanding } from "./land-walk.ts";

test.each([
  ["a landing", false],
  ["a landing that another agent reviews", true],
])(
  "SIGKILL at a git call of %s loses nothing, and the next run finishes it",
  async (_what, isReviewed) => {
    const seed = Date.now() % 1_000_000;
    const random = seededRandom(seed);
    const calls = await walkLanding(undefined, isReviewed);
    expect(calls).toBeGreaterThan(20);
    for (const moment of MOMENTS) {
      const call = 1 + random.below(calls);
      await walkLanding({ call, moment }, isReviewed).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${moment} call ${call} of ${calls}`, { cause: error });
      });
    }
  },
  180_000,
);
