/** SIGKILL at each git call of a landing, between and within them: the target is the old or the new commit, and the work lands once. */
import { expect, test } from "vitest";
import { walkAll } from "../../support/every-kill.ts";
import { walkLanding } from "./land-walk.ts";

test("git, or what has called it, is killed at each call of a landing", async () => {
  const { kills, calls } = await walkAll((kill) => walkLanding(kill));
  process.stderr.write(`landing: ${kills} kills at ${calls} calls of git\n`);
  expect(calls).toBeGreaterThan(20);
}, 3_600_000);
