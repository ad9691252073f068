/** SIGKILL at each git call of a run and of cleaning, between and within them: every object is kept, and the next call finishes the work. */
import { expect, test } from "vitest";
import { walkAll } from "../../support/every-kill.ts";
import { walk } from "./kill-walk.ts";

test.each(["run", "clean"] as const)(
  "git, or what has called it, is killed at each call of a %s",
  async (step) => {
    const { kills, calls } = await walkAll((kill) => walk(step, kill));
    process.stderr.write(`${step}: ${kills} kills at ${calls} calls of git\n`);
    expect(calls).toBeGreaterThan(20);
  },
  3_600_000,
);
