/**
 * Kills the worker of a landing at one of its git calls, lets the next one go on, and checks with git alone that the target is the old or
 * the new commit, that nothing landed unchecked or twice, and that nothing is lost.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import { GIT_ENVIRONMENT, newRepository } from "../../support/git-repository.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import type { Kill } from "../worktrees/kill-walk.ts";
import { inWorktree } from "../worktrees/place.ts";

const GIT = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
const TARGET = "mailchute/integration";

/** Counts the calls of the landing of `a` only: they carry the variables of its run. `$WALK/kill` holds "<call> <moment>". */
const COUNTING_GIT = `#!/bin/sh
[ -e "$WALK/on" ] || exec ${GIT} "$@"
printf x >> "$WALK/count"
call=$(wc -c < "$WALK/count")
read -r at moment < "$WALK/kill" || true
[ "$call" -eq "$at" ] || exec ${GIT} "$@"
rm -f "$WALK/on"
case $moment in
  before) kill -KILL $PPID; exit 1 ;;
  during)
    ${GIT} "$@" & child=$!
    sleep "0.00$((call % 8))"
    kill -KILL $PPID; kill -KILL $child 2>/dev/null; exit 1 ;;
  after) ${GIT} "$@"; kill -KILL $PPID; exit 1 ;;
esac
`;

/** Notes the commit that it sees, and passes it. */
const REVIEWER = `agents: [{name: rev, kind: exec, program: sh, args: [-ec, '${GIT} rev-parse HEAD >> "$WALK/reviewed"; echo "<result>{\\"verdict\\": \\"pass\\"}</result>"']}]\n`;

/**
 * Lands one branch on a target that has moved, so that it is rebased.
 * @param isReviewed another agent has to pass it: calls of the review count, too
 * @returns how many git calls a landing made
 */
export async function walkLanding(kill: Kill | undefined, isReviewed = false): Promise<number> {
  const env: Record<string, string> = { ...GIT_ENVIRONMENT };
  const config = `${QUICK_CONFIG}env_allow: [WALK]\n${isReviewed ? REVIEWER : ""}`;
  const pool = newPool({ config, env });
  const place = join(pool.dir, "walk");
  fs.mkdirSync(place);
  fs.writeFileSync(join(place, "git"), COUNTING_GIT, { mode: 0o755 });
  env["WALK"] = place;
  env["PATH"] = `${place}${delimiter}${process.env["PATH"] ?? ""}`;
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const repo = newRepository(join(pool.dir, "repo"));
  repo.git("checkout", "-q", "-b", TARGET);
  const old = repo.commit({ "other.txt": "other\n" }, "other work");
  repo.git("checkout", "-q", "main");
  // The checks write down what they saw: the tree, which nothing but that commit has.
  const verify = ["sh", "-c", `${GIT} rev-parse "HEAD^{tree}" >> "$WALK/checked"`];
  const script = "echo one > a.txt; commit; echo two >> a.txt; commit; echo three > left.txt";
  const land = { land: "branch", verify, max_attempts: 10, metadata: { dependencies: [] } };
  pool.drop("a", inWorktree(script, isReviewed ? { ...land, review_by: "rev" } : land));
  await (await pool.start(["--drain"])).ended;
  const tip = repo.git("rev-parse", "mailchute/a");

  fs.rmSync(join(place, "checked"));
  fs.writeFileSync(
    join(place, "kill"),
    kill === undefined ? "0 x\n" : `${kill.call} ${kill.moment}\n`,
  );
  fs.writeFileSync(join(place, "count"), "");
  expect((await pool.run(["land", "a"])).code).toBe(0);
  fs.writeFileSync(join(place, "on"), "");
  const drained = pool.start(["--drain"]).then(({ ended }) => ended);
  let seen = old;
  // At each moment it is the old or the new commit.
  const targets = new Set<string>();
  const watch = setInterval(() => {
    seen = repo.git("rev-parse", TARGET);
    targets.add(seen);
  }, 40);
  await drained.finally(() => clearInterval(watch));
  fs.rmSync(join(place, "on"), { force: true });
  const calls = fs.statSync(join(place, "count")).size;
  if (kill !== undefined) expect(calls, "it was killed").toBeGreaterThanOrEqual(kill.call);
  expect(pool.errors()).toEqual([]);
  expect((await pool.result("a.land")).output).toMatchObject({ landing: "landed", task_id: "a" });

  const now = repo.git("rev-parse", TARGET);
  for (const one of targets) expect([old, now]).toContain(one);
  // Once: each change is one commit on top of the old target.
  expect(repo.git("log", "--format=%s", "--reverse", `${old}..${now}`).split("\n")).toHaveLength(3);
  expect(repo.git("merge-base", old, now)).toBe(old);
  expect(repo.git("show", `${now}:a.txt`)).toBe("one\ntwo");
  expect(repo.git("show", `${now}:left.txt`)).toBe("three");
  const checked = fs.readFileSync(join(place, "checked"), "utf8").split("\n");
  expect(checked).toContain(repo.git("rev-parse", `${now}^{tree}`));
  if (isReviewed) {
    const seen = fs.readFileSync(join(place, "reviewed"), "utf8").trim().split("\n");
    expect(new Set(seen)).toEqual(new Set([tip]));
    const reviews = pool.results().filter(({ task_id }) => task_id.startsWith("a.review-"));
    expect(reviews).toMatchObject([{ verdict: "pass" }]);
    // A killed run may have been seen by the reviewer: another one only when that one has left no verdict.
    expect(seen.length).toBeLessThanOrEqual(kill === undefined ? 1 : 2);
  }
  // Nothing of ours is left, and what the branch had is kept although it was rebased.
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/heads/mailchute/a")).toBe("");
  const isKept = repo.git("rev-list", "refs/mailchute/a/landing").split("\n");
  expect(isKept).toContain(tip);
  // A rebase that was begun anew in another second has left commits without a name.
  expect(repo.git("fsck", "--connectivity-only", "--no-dangling")).toBe("");
  expect(repo.git("status", "--porcelain")).toBe("");
  return calls;
}
