/** A run with all kinds of work that lands, or the cleaning of a worktree with it, with a kill at a call of git; then nothing may be lost. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type CountingGit,
  countingGit,
  GIT,
  type GitCallMade,
  type GitKill,
} from "../../support/counting-git.ts";
import { GIT_ENVIRONMENT } from "../../support/git-repository.ts";
import { below, heldObjects, lostObjects } from "../../support/kept-objects.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";
import { Prepared } from "./prepared.ts";

export interface WalkOptions {
  /** A script of a git that is broken on purpose. */
  broken?: string;
  /** The launcher of a mailchute that is broken on purpose. */
  launcher?: string;
}

const TARGET = "mailchute/integration";

/** Leaves work of every kind in the worktree in which it runs, on the branch mailchute/a. */
const WORK = `
g() { ${GIT} -c user.name=x -c user.email=x@x "$@"; }
echo committed > committed.txt; g add -A; g commit -qm work
echo stashed > README.md; echo untracked-stash > s.txt; g stash push -qu
g checkout -q --detach; echo lost > lost.txt; g add -A; g commit -qm lost
g checkout -q mailchute/a
echo staged > staged.txt; g add staged.txt; echo later > staged.txt
echo changed > README.md; echo new > 'a new file.txt'
`;
/** Writes down what holds the work. A second run finds it all there, and ends. */
const NOTED = `
[ ! -e "$MUST_HAVE" ] || exit 0
${WORK}
{ g rev-parse HEAD refs/stash 'HEAD@{1}'; g write-tree
  GIT_INDEX_FILE="$MUST_HAVE.index" g add -A; GIT_INDEX_FILE="$MUST_HAVE.index" g write-tree; } > "$MUST_HAVE.all"
mv "$MUST_HAVE.all" "$MUST_HAVE"
`;

const starts = new Prepared((key) => prepare(JSON.parse(key) as WalkOptions & { step: string }));

async function prepare({ step, broken, launcher }: WalkOptions & { step: string }): Promise<{
  place: Place;
  git: CountingGit;
}> {
  const place = newPlace("", launcher === undefined ? {} : { launcher });
  const { pool, env, worktree } = place;
  const git = countingGit(join(pool.dir, "counted"), env, broken);
  if (step === "clean") {
    // The worktree of a task that has failed, in which a person goes on.
    pool.drop("a", inWorktree("echo x > x.txt; exit 64"));
    await pool.spawn(["run", "--drain"]).ended;
    await pool.error("a");
    const at = { cwd: worktree("a"), env: { ...process.env, ...GIT_ENVIRONMENT } };
    execFileSync("sh", ["-ec", WORK], { ...at, stdio: "pipe" });
  }
  return { place, git };
}

export async function walk(
  step: "run" | "clean",
  kill: GitKill | "count" | "steps",
  options: WalkOptions = {},
): Promise<GitCallMade[]> {
  const key = JSON.stringify({ step, ...options });
  return starts.use(key, ({ place, git }) => walkFrom(place, git, step, kill));
}

async function walkFrom(
  place: Place,
  git: CountingGit,
  step: "run" | "clean",
  kill: GitKill | "count" | "steps",
): Promise<GitCallMade[]> {
  const { pool, repo } = place;
  const arm = (until?: string): void => {
    if (kill === "steps") git.countSteps(until);
    else git.arm(kill === "count" ? [] : [kill], until);
  };
  const mustHave = await (step === "run" ? run(place, arm) : clean(place, arm));
  git.disarm();

  // The next call goes on; when the killed one had done its work already, there is nothing left.
  const again = await pool.run(["worktrees", "clean", "a"]);
  expect([0, 3], again.stdout + again.stderr).toContain(again.code);
  expect((await pool.run(["worktrees", "clean"])).code).toBe(0);
  expect((await pool.run(["worktrees", "ls"])).stdout).toBe("no task has a worktree\n");
  const left = fs.readdirSync(join(pool.state, "worktrees"));
  expect(left.filter((name) => !name.startsWith("."))).toEqual([]);
  expect(left).not.toContain(".removed");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  expect(lostObjects(repo, mustHave), "lost objects").toEqual([]);
  expect(repo.git("fsck", "--connectivity-only", "--no-dangling")).toBe("");
  expect(repo.git("status", "--porcelain")).toBe("");
  return git.calls();
}

/** From the making of the worktree to the record; then the work lands. @returns objects that must not be lost */
async function run({ pool, repo }: Place, arm: (until: string) => void): Promise<string[]> {
  const noted = join(pool.dir, "must-have");
  arm(join(pool.outbox, "a_result.json"));
  const more = { land: "merge", max_attempts: 3, env: { MUST_HAVE: noted } };
  pool.drop("a", inWorktree(NOTED, more));
  await pool.spawn(["run", "--drain"]).ended;
  expect(pool.errors()).toEqual([]);
  expect(await pool.result("a")).toMatchObject({ landing: "pending" });
  expect((await pool.result("a.land")).output).toMatchObject({ landing: "landed" });
  expect(repo.git("show", `${TARGET}:staged.txt`)).toBe("later");
  expect(repo.git("show", `${TARGET}:a new file.txt`)).toBe("new");
  const roots = fs.readFileSync(noted, "utf8").trim().split("\n");
  expect(roots).toHaveLength(5);
  return below(repo, roots);
}

/** @returns objects that must not be lost */
async function clean({ pool, repo, worktree }: Place, arm: () => void): Promise<string[]> {
  const held = heldObjects(repo, worktree("a"));
  arm();
  await pool.run(["worktrees", "clean", "a"]);
  return held;
}
