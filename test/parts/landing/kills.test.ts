/** Samples of the walk over all git calls of a landing (`every-kill.test.ts` takes every call), and of the broken variants that it must notice. */
import { expect, onTestFinished, test } from "vitest";
import { breakBuild, brokenGit, UNCHECKED } from "../../support/broken.ts";
import { sampleKills } from "../../support/every-kill.ts";
import { sampleOf } from "../../support/walks.ts";
import { walkLanding } from "./land-walk.ts";

test.each([
  ["a landing", {}],
  ["a landing that another agent reviews", { isReviewed: true }],
  ["landings that are checked together, of which one is bad", { hasMates: true }],
])(
  "SIGKILL at a git call of %s loses nothing, and the next run finishes it",
  async (_what, options) => {
    await sampleKills((kill) => walkLanding(kill, options));
  },
);

const CONTROLS: Readonly<Record<string, () => Promise<void>>> = {
  "a target that moves without a look at where it was": () =>
    expect(walkLanding("count", { broken: brokenGit("move") })).rejects.toThrow(/of a person/),
  "work that lands without its check": () =>
    expect(
      walkLanding("count", { launcher: breakBuild(onTestFinished, UNCHECKED) }),
    ).rejects.toThrow(),
  "commits of a branch that go when it was rebased": () =>
    expect(walkLanding("count", { broken: brokenGit("landing") })).rejects.toThrow(/lost objects/),
};

test.each(sampleOf(Object.keys(CONTROLS), 1))("control: %s: noticed", async (name) => {
  await CONTROLS[name]?.();
});
