/** SIGKILL at each git call of a landing, and between them: the target is the old or the new commit, and the work lands once. */
import { expect, test } from "vitest";
import { MOMENTS } from "../worktrees/kill-walk.ts";
import { walkLanding } from "./land-walk.ts";

/** How many walks go on at once. */
const AT_ONCE = 3;

test.each(MOMENTS)(
  "killed %s each call",
  async (moment) => {
    const calls = await walkLanding(undefined);
    expect(calls).toBeGreaterThan(20);
    const all = Array.from({ length: calls }, (_, index) => index + 1);
    const next = async (): Promise<void> => {
      for (let call = all.shift(); call !== undefined; call = all.shift())
        await walkLanding({ call, moment }).catch((error: unknown) => {
          throw new Error(`${moment} call ${call} of ${calls}`, { cause: error });
        });
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  },
  1_800_000,
);
