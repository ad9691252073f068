/** Samples of the walk over all git calls of a run and of cleaning; `every-kill.test.ts` takes every call. */
import { expect, test } from "vitest";
import { seededRandom } from "../../support/seeded-random.ts";
import { MOMENTS, walk } from "./kill-walk.ts";

test.each(["run", "clean"] as const)(
  "SIGKILL at a git call of %s loses nothing, and the next one finishes the work",
  async (step) => {
    const seed = Date.now() % 1_000_000;
    const random = seededRandom(seed);
    const { calls } = await walk(step, undefined);
    expect(calls).toBeGreaterThan(20);
    for (const moment of MOMENTS) {
      const call = 1 + random.below(calls);
      await walk(step, { call, moment }).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${moment} call ${call} of ${calls}`, { cause: error });
      });
    }
  },
);
