/** SIGKILL at each git call of a run and of cleaning, and between them: every object is kept, and the next call finishes the work. */
import { expect, test } from "vitest";
import { MOMENTS, type Moment, walk } from "./kill-walk.ts";

/** How many walks go on at once. */
const AT_ONCE = 3;

const WALKS = (["run", "clean"] as const).flatMap((step) =>
  MOMENTS.map((moment): [step: "run" | "clean", moment: Moment] => [step, moment]),
);

test.each(WALKS)(
  "killed %s, %s each call",
  async (step, moment) => {
    const { calls } = await walk(step, undefined);
    expect(calls).toBeGreaterThan(20);
    const all = Array.from({ length: calls }, (_, index) => index + 1);
    const next = async (): Promise<void> => {
      for (let call = all.shift(); call !== undefined; call = all.shift())
        await walk(step, { call, moment }).catch((error: unknown) => {
          throw new Error(`${step}, ${moment} call ${call} of ${calls}`, { cause: error });
        });
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  },
  1_800_000,
);
