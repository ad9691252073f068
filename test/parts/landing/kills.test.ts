/** Samples of the walk over all git calls of a landing (`every-kill.test.ts` takes every call), and broken variants that it must notice. */
import { expect, onTestFinished, test } from "vitest";
import { breakBuild, brokenGit, UNCHECKED } from "../../support/broken.ts";
import { sampleKills } from "../../support/every-kill.ts";
import { walkLanding } from "./land-walk.ts";

test.each([
  ["a landing", false],
  ["a landing that another agent reviews", true],
])(
  "SIGKILL at a git call of %s loses nothing, and the next run finishes it",
  async (_what, isReviewed) => {
    await sampleKills((kill) => walkLanding(kill, { isReviewed }));
  },
  180_000,
);

test("control: a target that moves without a look at where it was is noticed", async () => {
  const broken = brokenGit("move");
  await expect(walkLanding("count", { broken })).rejects.toThrow(/of a person/);
});

test("control: work that lands without its check is noticed", async () => {
  const launcher = breakBuild(onTestFinished, UNCHECKED);
  await expect(walkLanding("count", { launcher })).rejects.toThrow();
});

test("control: commits of a branch that go when it was rebased are noticed", async () => {
  const broken = brokenGit("landing");
  await expect(walkLanding("count", { broken })).rejects.toThrow(/lost objects/);
});
