/**
 * Kills what runs worktrees at one of its git calls, lets the next run go on, and checks that nothing is lost. git itself is the
 * program in which it is killed: a small `git` that comes first on PATH counts the calls.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import { GIT_ENVIRONMENT, newRepository } from "../../support/git-repository.ts";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";

/** `before` and `after` are between two calls; `during` also kills git itself. */
export type Moment = "before" | "during" | "after";
export const MOMENTS: readonly Moment[] = ["before", "during", "after"];

export interface Kill {
  call: number;
  moment: Moment;
}

const GIT = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

/** `$WALK/kill` holds "<call> <moment>"; `$WALK/count` has one byte for each call so far. */
const COUNTING_GIT = `#!/bin/sh
[ -e "$WALK/on" ] || exec ${GIT} "$@"
printf x >> "$WALK/count"
call=$(wc -c < "$WALK/count")
echo "$call $*" >> "$WALK/calls"
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

/** Leaves work of every kind, and writes down the objects that hold it. Its second run finds it all there, and ends. */
const WORK = `
[ ! -e "$WALK/must-have" ] || exit 0
g() { ${GIT} -c user.name=x -c user.email=x@x "$@"; }
echo committed > committed.txt; g add -A; g commit -qm work
echo stashed > README.md; echo untracked-stash > s.txt; g stash push -qu
g checkout -q --detach; echo lost > lost.txt; g add -A; g commit -qm lost; g rev-parse HEAD > "$WALK/lost"
g checkout -q "mailchute/$MAILCHUTE_TASK_ID"
echo staged > staged.txt; g add staged.txt; echo later > staged.txt
echo changed > README.md; echo new > 'a new file.txt'
{ g rev-parse HEAD; g rev-parse refs/stash; cat "$WALK/lost"; g write-tree
  GIT_INDEX_FILE="$WALK/index" g add -A; GIT_INDEX_FILE="$WALK/index" g write-tree; } > "$WALK/all"
mv "$WALK/all" "$WALK/must-have"
`;

export interface Walked {
  /** How many git calls there were while it counted. */
  calls: number;
}

/** Runs a task with all kinds of work, and cleans it away by name. One of both is killed once. */
export async function walk(step: "run" | "clean", kill: Kill | undefined): Promise<Walked> {
  const env: Record<string, string> = { ...GIT_ENVIRONMENT };
  const pool = newPool({ config: `${QUICK_CONFIG}env_allow: [WALK]\n`, env });
  const place = join(pool.dir, "walk");
  fs.mkdirSync(place);
  fs.writeFileSync(join(place, "git"), COUNTING_GIT, { mode: 0o755 });
  env["WALK"] = place;
  env["PATH"] = `${place}${delimiter}${process.env["PATH"] ?? ""}`;
  env["XDG_STATE_HOME"] = join(pool.dir, "user");
  const repo = newRepository(join(pool.dir, "repo"));
  const arm = (): void => {
    fs.writeFileSync(
      join(place, "kill"),
      kill === undefined ? "0 before\n" : `${kill.call} ${kill.moment}\n`,
    );
    fs.writeFileSync(join(place, "count"), "");
    fs.writeFileSync(join(place, "on"), "");
  };
  const counted = (): number => fs.statSync(join(place, "count")).size;

  if (step === "run") arm();
  pool.drop("a", { exec: ["sh", "-ec", WORK], cwd: "repo", worktree: "auto", max_attempts: 3 });
  await pool.start(["--drain"]);
  await pool.result("a");
  if (step === "run") {
    fs.rmSync(join(place, "on"), { force: true });
    expect(fs.existsSync(join(pool.state, "worktrees", "a"))).toBe(true);
  } else {
    arm();
    await pool.run(["worktrees", "clean", "a"]);
    fs.rmSync(join(place, "on"), { force: true });
  }
  const calls = counted();
  if (kill !== undefined) expect(calls, "it was killed").toBeGreaterThanOrEqual(kill.call);

  // The next call goes on; when the killed one had done its work already, there is nothing left.
  const again = await pool.run(["worktrees", "clean", "a"]);
  expect([0, 3], again.stdout + again.stderr).toContain(again.code);
  expect((await pool.run(["worktrees", "clean"])).code).toBe(0);
  expect((await pool.run(["worktrees", "ls"])).stdout).toBe("no task has a worktree\n");
  const left = fs
    .readdirSync(join(pool.state, "worktrees"))
    .filter((name) => !name.startsWith(".re"));
  expect(left).toEqual([".gitignore"]);
  expect(fs.existsSync(join(pool.state, "worktrees", ".removed"))).toBe(false);
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);

  const mustHave = fs.readFileSync(join(place, "must-have"), "utf8").trim().split("\n");
  expect(mustHave).toHaveLength(5);
  // What no ref holds is gone after this.
  repo.git("reflog", "expire", "--expire=now", "--all");
  repo.git("gc", "--quiet", "--prune=now");
  const reachable = new Set(
    repo
      .git("rev-list", "--objects", "--all")
      .split("\n")
      .map((line) => line.split(" ")[0]),
  );
  for (const object of mustHave)
    for (const one of repo.git("rev-list", "--objects", object).split("\n"))
      expect(reachable, one).toContain(one.split(" ")[0]);
  expect(repo.git("fsck", "--connectivity-only")).toBe("");
  expect(repo.git("status", "--porcelain")).toBe("");
  return { calls };
}
