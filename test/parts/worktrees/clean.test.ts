/** What a worktree holds keeps it; what is cleaned by name is saved first, and rescue brings it back. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Cleaned } from "../../../src/parts/worktrees/clean-worktrees.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

takeSome();

/** Its run fails at the end: what a completed one leaves would be committed. */
async function ran(script: string, more: object = {}): Promise<Place> {
  const place = newPlace();
  place.pool.drop("a", inWorktree(`${script}; exit 64`, more));
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.error("a");
  return place;
}

async function clean({ ask }: Place, ...args: string[]): Promise<Cleaned> {
  const { json } = await ask("worktrees", "clean", ...args);
  const [first] = (json as { worktrees: Cleaned[] }).worktrees;
  if (first === undefined) throw new Error("there was nothing to clean");
  return first;
}

const WORK: readonly [what: string, script: string, reason: string][] = [
  ["modified", "echo changed > README.md", "1 modified (README.md)"],
  ["untracked", "echo new > new.txt", "1 untracked (new.txt)"],
  ["staged", "echo one > new.txt; git add new.txt; echo two > new.txt", "1 modified (new.txt)"],
  ["unpushed", "echo new > new.txt; commit", "1 commit on mailchute/a that no other branch has"],
  ["ignored", "echo log > x.log", "1 ignored that setup did not make (x.log)"],
  ["detached", "git checkout -q --detach; echo x > x; commit", "commits that are on no branch"],
];

test.each(WORK)("%s work keeps a worktree, which says so", async (_what, script, reason) => {
  const place = await ran(script);
  const cleaned = await clean(place);
  expect(cleaned).toMatchObject({ removed: false });
  expect(cleaned.reasons).toContain(reason);
  expect(fs.existsSync(place.worktree("a"))).toBe(true);
  place.env["COLUMNS"] = "80";
  const { stdout } = await place.pool.run(["worktrees", "ls"]);
  expect(stdout.replace(/\s+/g, " ")).toContain(reason);
  expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
});

test("a merge that has stopped is saved although a git was killed while it saved one before", async () => {
  const side =
    "git checkout -q --detach; echo side > README.md; commit; side=$(git rev-parse HEAD)";
  const stop =
    "git checkout -q mailchute/a; echo own > README.md; commit; git -c user.name=x -c user.email=x@x merge -q $side || true";
  const place = await ran(`${side}; ${stop}`);
  const gitDir = place.repo.git("-C", place.worktree("a"), "rev-parse", "--absolute-git-dir");
  fs.writeFileSync(join(gitDir, "mailchute-index.lock"), "");
  expect(await clean(place, "a")).toMatchObject({ removed: true });
  const saved = place.repo.git("ls-tree", "-r", "--name-only", "refs/mailchute/a/1^2");
  expect(saved.split("\n")).toEqual(expect.arrayContaining([".unmerged/2/README.md"]));
});

test("modified, untracked, staged, stashed and detached work is saved, and comes back", async () => {
  const place = await ran(
    [
      "echo stashed > README.md; echo stash-new > s.txt; git -c user.name=x -c user.email=x@x stash push -qu",
      "git checkout -q --detach; echo lost > lost.txt; commit; git checkout -q mailchute/a",
      "echo staged > staged.txt; git add staged.txt; echo later > staged.txt",
      "echo changed > README.md; echo new > 'a new file.txt'",
    ].join("; "),
  );
  const { pool, repo, worktree } = place;
  expect(await clean(place, "a")).toMatchObject({ removed: true, saved: "refs/mailchute/a/1" });
  expect(fs.existsSync(worktree("a"))).toBe(false);
  const branches = await pool.run(["rescue", "a", "--branch", "back"]);
  expect(branches.stdout.trim().split("\n").sort()).toEqual([
    "back",
    "back.earlier-1",
    "back.index",
    "back.stash-1",
  ]);
  expect(repo.git("show", "back:README.md")).toBe("changed");
  expect(repo.git("show", "back:a new file.txt")).toBe("new");
  expect(repo.git("show", "back:staged.txt")).toBe("later");
  expect(repo.git("show", "back.index:staged.txt")).toBe("staged");
  expect(repo.git("show", "back.earlier-1:lost.txt")).toBe("lost");
  expect(repo.git("show", "back.stash-1:README.md")).toBe("stashed");
  expect(repo.git("show", "back.stash-1^3:s.txt")).toBe("stash-new");
  expect(repo.git("stash", "list")).toContain("mailchute/a");
  const out = join(pool.dir, "out");
  await pool.run(["rescue", "a", "--to", out]);
  expect(fs.readFileSync(join(out, "README.md"), "utf8")).toBe("changed\n");
  expect(fs.readFileSync(join(`${out}.stash-1`, "s.txt"), "utf8")).toBe("stash-new\n");
  expect(fs.readdirSync(out)).not.toContain(".mailchute-index");
  // A second time it overwrites nothing, and nothing goes into a person's tree.
  expect((await pool.run(["rescue", "a", "--branch", "back"])).stderr).toContain("is there");
  expect((await pool.run(["rescue", "a", "--to", out])).stderr).toContain("is there");
  const inside = await pool.run(["rescue", "a", "--to", join(repo.dir, "x")]);
  expect(inside.stderr).toContain("lies in the tree of a repository");
  expect(repo.git("status", "--porcelain")).toBe("");
});

test("a merged branch goes with its worktree; one that is not merged stays", async () => {
  const place = await ran("echo new > new.txt; commit");
  const { repo, worktree } = place;
  expect(await clean(place, "a")).toMatchObject({ removed: true, saved: null });
  expect(fs.existsSync(worktree("a"))).toBe(false);
  expect(repo.git("show", "mailchute/a:new.txt")).toBe("new");
  await place.ask("worktrees", "clean");
  expect(repo.git("show", "mailchute/a:new.txt")).toBe("new");
  repo.git("merge", "--quiet", "--ff-only", "mailchute/a");
  await place.ask("worktrees", "clean");
  expect(repo.git("branch", "--list", "mailchute/*")).toBe("");
  expect(fs.existsSync(worktree("a"))).toBe(false);
});

test("a merge that has stopped keeps its worktree; by name its sides are saved", async () => {
  const script = [
    "echo ours > README.md; commit; git checkout -qb other HEAD~1; echo theirs > README.md; commit",
    "git checkout -q mailchute/a; git -c user.name=x -c user.email=x@x merge -q other || true",
  ].join("; ");
  const place = await ran(script);
  const first = await clean(place);
  expect(first.reasons).toContain("a merge that was not ended");
  expect(first.reasons).toContain("1 unmerged (README.md)");
  expect(await clean(place, "a")).toMatchObject({ removed: true });
  await place.pool.run(["rescue", "a", "--branch", "back"]);
  expect(place.repo.git("show", "back:README.md")).toContain("<<<<<<<");
  expect(place.repo.git("show", "back.index:.unmerged/2/README.md")).toBe("ours");
  expect(place.repo.git("show", "back.index:.unmerged/3/README.md")).toBe("theirs");
});

test("ignored files keep a worktree, except those of setup; --ignored saves them", async () => {
  const setup = ["sh", "-c", "mkdir build; echo made > build/out"];
  const untouched = await ran("true", { setup });
  expect(fs.existsSync(untouched.worktree("a"))).toBe(false);
  const place = await ran("echo changed > build/out; echo mine > x.log", { setup });
  expect(await clean(place, "a")).toMatchObject({ removed: false });
  expect(await clean(place, "a", "--ignored")).toMatchObject({ removed: true });
  await place.pool.run(["rescue", "a", "--branch", "back"]);
  expect(place.repo.git("show", "back:build/out")).toBe("changed");
  expect(place.repo.git("show", "back:x.log")).toBe("mine");
});

test("of ignored files only those that may go by the settings keep no worktree", async () => {
  const place = newPlace('worktree_ignored_may_go: [node_modules/, "dist/*", "!dist/keep.log"]\n');
  place.repo.commit({ ".gitignore": "node_modules/\ndist/\n*.log\n" });
  const packages = "mkdir -p 'sub/node_modules/a b' dist; echo x > 'sub/node_modules/a b/x.js'";
  const scripts = {
    spare: `${packages}; echo x > dist/x`,
    kept: `${packages}; echo x > dist/keep.log`,
    other: `${packages}; echo x > other.log`,
    // It fits a pattern, and git does not ignore it.
    unignored: `${packages}; echo > .gitignore; git add .gitignore; git -c user.name=x -c user.email=x@x commit -qm x`,
    inner: `${packages}; git init -q node_modules/inner; cd node_modules/inner; echo x > x`,
  };
  for (const [id, script] of Object.entries(scripts))
    place.pool.drop(id, inWorktree(`${script}; exit 64`));
  await (await place.pool.start(["--drain"])).ended;
  const { json } = await place.ask("worktrees", "clean");
  const reasons = (json as { worktrees: Cleaned[] }).worktrees.map((one) => [one.id, one.reasons]);
  expect(Object.fromEntries(reasons)).toEqual({
    inner: ["node_modules/inner is a repository of its own"],
    kept: ["1 ignored that setup did not make (dist/keep.log)"],
    other: ["1 ignored that setup did not make (other.log)"],
    unignored: [
      "1 untracked (sub/node_modules/a b/x.js)",
      "1 commit on mailchute/unignored that no other branch has",
    ],
  });
  expect(fs.existsSync(place.worktree("spare"))).toBe(false);
});

test("a repository inside the worktree keeps it, also by name", async () => {
  const place = await ran(
    "git init -q inner; cd inner; echo x > x; git add x; git -c user.name=x -c user.email=x@x commit -qm x",
  );
  const cleaned = await clean(place, "a");
  expect(cleaned.removed).toBe(false);
  expect(cleaned.reasons).toContain("inner is a repository of its own");
  expect(fs.existsSync(join(place.worktree("a"), "inner", ".git"))).toBe(true);
});

test("the worktree of a task that waits stays, also by name", async () => {
  const place = newPlace();
  place.pool.drop("a", inWorktree("echo x > x; exit 75"));
  await place.pool.start();
  await waitFor(() => fs.existsSync(join(place.worktree("a"), "x")), { what: "its first run" });
  await place.pool.stop();
  const cleaned = await clean(place, "a");
  expect(cleaned).toMatchObject({ removed: false, reasons: ["its task has not ended"] });
});

test("a person who has no worktrees is told so", async () => {
  const { pool } = newPlace();
  expect((await pool.run(["worktrees", "ls"])).stdout).toBe("no task has a worktree\n");
  expect((await pool.run(["worktrees", "clean", "x"])).code).toBe(3);
  const { code, stdout } = await pool.run(["rescue"]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "nothing is saved\n" });
});
