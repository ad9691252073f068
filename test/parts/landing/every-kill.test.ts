/** SIGKILL at each git call of a landing, between and within them: the target is the old or the new commit, and the work lands once. */
import { expect, test } from "vitest";
import { walkAll } from "../../support/every-kill.ts";
import { walkLanding } from "./land-walk.ts";
import { landTenWithKills } from "./ten-walk.ts";

test("git, or what has called it, is killed at each call of a landing", async () => {
  const { kills, calls } = await walkAll((kill) => walkLanding(kill));
  process.stderr.write(`landing: ${kills} kills at ${calls} calls of git\n`);
  expect(calls).toBeGreaterThan(20);
}, 3_600_000);

test("git, or what has called it, is killed at each call of landings that are checked together", async () => {
  const { kills, calls } = await walkAll((kill) => walkLanding(kill, { hasMates: true }));
  process.stderr.write(`landings together: ${kills} kills at ${calls} calls of git\n`);
  expect(calls).toBeGreaterThan(60);
}, 7_200_000);

test("killed once at each kind of step of ten branches, seven land and three stay with a person", async () => {
  const killed = await landTenWithKills(1, 0);
  for (const step of [
    /^worktree add /,
    /^commit-tree /,
    /^update-ref refs\/mailchute\/T\/\d/,
    /\brebase\b/,
    /^verify$/,
    /^update-ref -m mailchute: landing of T /,
    /^worktree remove /,
    /^update-ref --stdin /,
  ])
    expect(
      killed.filter((one) => step.test(one)),
      `${step} in\n${killed.join("\n")}`,
    ).not.toEqual([]);
}, 1_800_000);
