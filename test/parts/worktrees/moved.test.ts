/** A repository that was moved: the command says so, and how git mends the worktrees. */
import fs from "node:fs";
import { expect, test } from "vitest";
import { repositoryAt, waysToKeepRefs } from "../../support/git-repository.ts";
import { inWorktree, newPlace } from "./place.ts";

const CASES = waysToKeepRefs().flatMap((init) => ["ls", "clean"].map((verb) => ({ verb, init })));

test.each(CASES)(
  "worktrees $verb of a moved repository tells what to do, and works again after it ($init)",
  async ({ verb, init }) => {
    const { pool, repo, worktree } = newPlace("", {}, init);
    pool.drop("a", inWorktree("echo new > new.txt; exit 64"));
    await (await pool.start(["--drain"])).ended;
    await pool.error("a");
    fs.renameSync(repo.dir, `${repo.dir}-moved`);
    const lost = await pool.run(["worktrees", verb]);
    expect(lost).toMatchObject({ code: 1, stdout: "" });
    expect(lost.stderr.replace(/\s+/g, " ")).toContain(
      `there is no repository ${fs.realpathSync(pool.dir)}/repo/.git`,
    );
    const [, args = ""] =
      /git (worktree repair "[^"]+")/.exec(lost.stderr.replace(/\s+/g, " ")) ?? [];
    expect(args).toContain(worktree("a"));
    repositoryAt(`${repo.dir}-moved`).git(...args.replaceAll('"', "").split(" "));
    const found = await pool.run(["worktrees", verb]);
    expect(found.code).toBe(0);
    expect(found.stdout).toContain("1 untracked (new.txt)");
  },
);

test("a tree in which no task has a worktree says that", async () => {
  const { pool } = newPlace();
  expect(await pool.run(["worktrees", "ls"])).toMatchObject({
    code: 0,
    stdout: "no task has a worktree\n",
  });
});
