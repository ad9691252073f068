/**
 * A landing on a target that moves while the work is checked, with a kill at a call of git. Then git alone is asked: the target was the old or the
 * new commit at each moment, nothing landed unchecked or twice, a person's commit is there, and nothing is lost.
 */
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
import { heldObjects, lostObjects } from "../../support/kept-objects.ts";
import type { WalkOptions } from "../worktrees/kill-walk.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";
import { Prepared } from "../worktrees/prepared.ts";

const TARGET = "mailchute/integration";

/** Notes the commit that it sees, and passes it. */
const REVIEWER = `agents: [{name: rev, kind: exec, program: sh, args: [-ec, '${GIT} rev-parse HEAD >> "$WALK/reviewed"; echo "<result>{\\"verdict\\": \\"pass\\"}</result>"']}]\n`;

/** Notes the tree that it sees and likes, which nothing but its commit has. While the first landing is checked, a person commits on the target. */
const CHECK = `
case $PWD in */.landing/*) test ! -e bad.txt || exit 3 ;; esac
${GIT} rev-parse "HEAD^{tree}" >> "$WALK/checked"
case $PWD in */.landing/*) ;; *) exit 0 ;; esac
mkdir "$WALK/moved" 2>/dev/null || exit 0
export GIT_INDEX_FILE="$WALK/index"
${GIT} read-tree ${TARGET}
${GIT} update-index --add --cacheinfo "100644,$(echo person | ${GIT} hash-object -w --stdin),person.txt"
new=$(${GIT} -c user.name=p -c user.email=p@x commit-tree -m "of a person" -p ${TARGET} "$(${GIT} write-tree)")
${GIT} update-ref refs/heads/${TARGET} "$new"
echo "$new" > "$WALK/person"
`;

export interface LandWalkOptions extends WalkOptions {
  /** Another agent has to pass it: calls of the review count, too. */
  isReviewed?: boolean;
  /** Two other works wait with it: a good one, and one whose check is red. */
  hasMates?: boolean;
}

/** The tasks beside a, and their files. */
const MATES = [
  ["b", "b.txt"],
  ["c", "bad.txt"],
] as const;

interface Start {
  place: Place;
  git: CountingGit;
  walk: string;
  old: string;
  tip: string;
  held: string[];
}

const starts = new Prepared((key) => prepare(JSON.parse(key) as LandWalkOptions));

/** A task has ended on its branch, and a person says that it is to land. */
async function prepare(options: LandWalkOptions): Promise<Start> {
  const { isReviewed, hasMates, broken, launcher } = options;
  const config = `env_allow: [WALK]\n${isReviewed === true ? REVIEWER : ""}`;
  const place = newPlace(config, launcher === undefined ? {} : { launcher });
  const { pool, repo, env, worktree } = place;
  const walk = join(pool.dir, "walk");
  fs.mkdirSync(walk);
  env["WALK"] = walk;
  const git = countingGit(join(pool.dir, "counted"), env, broken);
  repo.git("checkout", "-q", "-b", TARGET);
  const old = repo.commit({ "other.txt": "other\n" }, "other work");
  repo.git("checkout", "-q", "main");
  const script = "echo one > a.txt; commit; echo two >> a.txt; commit; echo three > left.txt";
  const land = { land: "branch", verify: ["sh", "-c", CHECK], max_attempts: 10 };
  pool.drop("a", inWorktree(script, isReviewed === true ? { ...land, review_by: "rev" } : land));
  const mates = hasMates === true ? MATES : [];
  for (const [id, file] of mates) pool.drop(id, inWorktree(`echo ${id} > ${file}; commit`, land));
  await pool.spawn(["run", "--drain"]).ended;
  const tip = repo.git("rev-parse", "mailchute/a");
  const ids = ["a", ...mates.map(([id]) => id)];
  const held = ids.flatMap((id) => heldObjects(repo, worktree(id)));
  fs.rmSync(join(walk, "checked"));
  for (const id of ids) expect((await pool.run(["land", id])).code).toBe(0);
  return { place, git, walk, old, tip, held };
}

export async function walkLanding(
  kill: GitKill | "count" | "steps",
  options: LandWalkOptions = {},
): Promise<GitCallMade[]> {
  return starts.use(JSON.stringify(options), (start) =>
    walkFrom(start, kill, options.isReviewed === true, options.hasMates === true),
  );
}

async function walkFrom(
  { place, git, walk, old, tip, held }: Start,
  kill: GitKill | "count" | "steps",
  isReviewed: boolean,
  hasMates: boolean,
): Promise<GitCallMade[]> {
  const { pool, repo } = place;
  if (kill === "steps") git.countSteps();
  else git.arm(kill === "count" ? [] : [kill]);
  const targets = await drain(place);
  git.disarm();
  const failed = pool.errors().map(({ task_id: id }) => id);
  expect(failed).toEqual(hasMates ? ["c.land"] : []);
  for (const id of hasMates ? ["a", "b"] : ["a"])
    expect((await pool.result(`${id}.land`)).output).toMatchObject({ landing: "landed" });

  const person = fs.readFileSync(join(walk, "person"), "utf8").trim();
  const now = repo.git("rev-parse", TARGET);
  // With other works it moves more than once.
  if (!hasMates) for (const one of targets) expect([old, person, now]).toContain(one);
  // Once: each change is one commit on top of what was there.
  const subjects = repo.git("log", "--format=%s", "--reverse", `${old}..${now}`).split("\n");
  expect(subjects[0]).toBe("of a person");
  expect(subjects.filter((one) => one === "work")).toHaveLength(hasMates ? 3 : 2);
  expect(subjects).toHaveLength(hasMates ? 5 : 4);
  if (hasMates) expect(repo.git("show", `${now}:b.txt`)).toBe("b");
  expect(repo.git("merge-base", person, now), "a person's commit").toBe(person);
  expect(repo.git("show", `${now}:a.txt`)).toBe("one\ntwo");
  expect(repo.git("show", `${now}:left.txt`)).toBe("three");
  const checked = fs.readFileSync(join(walk, "checked"), "utf8").split("\n");
  for (const one of [...targets, now].filter((commit) => ![old, person].includes(commit)))
    expect(checked, "checked trees").toContain(repo.git("rev-parse", `${one}^{tree}`));
  if (isReviewed) checkReviews(place, walk, tip, kill);
  // Nothing of ours is left, and what the branch had is kept although it was rebased.
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(hasMates ? 2 : 1);
  const gone = ["refs/heads/mailchute/a", "refs/heads/mailchute/b"];
  expect(repo.git("for-each-ref", "--format=%(refname)", ...gone)).toBe("");
  expect(lostObjects(repo, held), "lost objects").toEqual([]);
  expect(repo.git("fsck", "--connectivity-only", "--no-dangling")).toBe("");
  expect(repo.git("status", "--porcelain")).toBe("");
  return git.calls();
}

/** @returns where the target was */
async function drain({ pool, repo }: Place): Promise<Set<string>> {
  const targets = new Set<string>();
  const { ended } = pool.spawn(["run", "--drain"]);
  // Nothing packs it.
  const file = join(repo.dir, ".git", "refs", "heads", TARGET);
  const watch = setInterval(() => targets.add(fs.readFileSync(file, "utf8").trim()), 5);
  await ended.finally(() => clearInterval(watch));
  return targets;
}

function checkReviews(
  { pool }: Place,
  walk: string,
  tip: string,
  kill: GitKill | "count" | "steps",
): void {
  const seen = fs.readFileSync(join(walk, "reviewed"), "utf8").trim().split("\n");
  expect(new Set(seen)).toEqual(new Set([tip]));
  const reviews = pool.results().filter(({ task_id }) => task_id.startsWith("a.review-"));
  expect(reviews).toMatchObject([{ verdict: "pass" }]);
  // A killed run may have been seen by the reviewer: another one only when that one has left no verdict.
  expect(seen.length).toBeLessThanOrEqual(typeof kill === "string" ? 1 : 2);
}
