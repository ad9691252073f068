/**
 * Samples of the walk over all git calls of a run and of cleaning (`every-kill.test.ts` takes every call), and of the broken variants that
 * it must notice.
 */
import { expect, onTestFinished, test } from "vitest";
import { breakBuild, brokenGit, type Change } from "../../support/broken.ts";
import { sampleKills } from "../../support/every-kill.ts";
import { sampleOf } from "../../support/walks.ts";
import { walk } from "./kill-walk.ts";

const CODE = "dist/worker/task-worktrees.cjs";
/** What a killed git has kept from being saved is only told of. */
const UNSAVED: readonly Change[] = [
  { file: CODE, from: "KEEP_TRIES_MAX = 3", to: "KEEP_TRIES_MAX = 1" },
  {
    file: CODE,
    from: 'outcome.kind === "completed" ? notDone(error, why) : outcome',
    to: "outcome",
  },
];
const LOCKS_LEFT: Change = {
  file: CODE,
  from: "node_fs.default.rmSync(lock, {",
  to: "void (lock, {",
};

test.each(["run", "clean"] as const)(
  "SIGKILL at a git call of a %s loses nothing, and the next one finishes the work",
  async (step) => {
    await sampleKills((kill) => walk(step, kill));
  },
);

const CONTROLS: Readonly<Record<string, () => Promise<void>>> = {
  "a run whose git only says that it has saved work": () =>
    expect(walk("run", "count", { broken: brokenGit("save") })).rejects.toThrow(/lost objects/),
  "a cleaning whose git only says that it has saved work": () =>
    expect(walk("clean", "count", { broken: brokenGit("save") })).rejects.toThrow(/lost objects/),
  "a run that completes although a killed git has not saved its work": () => {
    const launcher = breakBuild(onTestFinished, ...UNSAVED);
    const kill = { at: "--shortstat", moment: "before", victim: "git" } as const;
    return expect(walk("run", kill, { launcher })).rejects.toThrow(/landing/);
  },
  "locks of a killed git that are left, and keep the next run from its work": () => {
    const launcher = breakBuild(onTestFinished, LOCKS_LEFT);
    const at = "reset --hard --quiet";
    const kill = { at, moment: "within", victim: "caller", step: 1 } as const;
    return expect(walk("run", kill, { launcher })).rejects.toThrow();
  },
};

test.each(sampleOf(Object.keys(CONTROLS), 1))("control: %s: noticed", async (name) => {
  await CONTROLS[name]?.();
});
