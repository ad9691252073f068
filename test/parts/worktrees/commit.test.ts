/** What a completed run leaves uncommitted becomes a commit on the branch of its task; nothing that it holds is lost. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace, type Place } from "./place.ts";

async function completed(script: string, more: object = {}, place = newPlace()): Promise<Place> {
  place.pool.drop("a", inWorktree(script, more));
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.result("a");
  return place;
}

const EVERYTHING =
  "echo changed > README.md; rm .gitignore; mkdir sub; echo new > 'sub/a new file'; echo one > staged; git add staged";

test("modified, new, staged and deleted files are committed, with the title as the subject", async () => {
  const { pool, repo, worktree } = await completed(EVERYTHING, { title: "Add a file\nand more" });
  expect(repo.git("log", "--format=%s", "mailchute/a")).toBe("Add a file\nfirst");
  expect(repo.git("diff", "--name-status", "main", "mailchute/a").split("\n").sort()).toEqual([
    "A\tstaged",
    "A\tsub/a new file",
    "D\t.gitignore",
    "M\tREADME.md",
  ]);
  expect(repo.git("log", "-1", "--format=%an, %cn", "mailchute/a")).toBe("mailchute, mailchute");
  // The branch has it all, so there is no save, and the worktree is clean.
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/mailchute")).toBe(
    "refs/mailchute/a/base",
  );
  expect(repo.git("-C", worktree("a"), "status", "--porcelain")).toBe("");
  expect(pool.alerts()).toEqual([]);
});

test("the author is the one whom the settings of the repository name, and no hook or signature is asked for", async () => {
  const place = newPlace();
  const { repo, pool } = place;
  for (const [key, value] of [
    ["user.name", "Ada"],
    ["user.email", "ada@example.invalid"],
    ["commit.gpgSign", "true"],
    ["gpg.program", "/nowhere/gpg"],
  ] as const)
    repo.git("config", key, value);
  for (const hook of ["pre-commit", "commit-msg", "post-commit", "reference-transaction"])
    fs.writeFileSync(
      join(repo.dir, ".git", "hooks", hook),
      `#!/bin/sh\ntouch "${pool.dir}/hook"\nexit 1\n`,
      { mode: 0o755 },
    );
  const prompt = "\n  Mend the login\u0007 page  \nIt is broken.";
  await completed("echo x > x", { prompt }, place);
  expect(repo.git("log", "-1", "--format=%an <%ae>, %cn: %s", "mailchute/a")).toBe(
    "Ada <ada@example.invalid>, mailchute: Mend the login  page",
  );
  expect(fs.existsSync(join(pool.dir, "hook"))).toBe(false);
});

test("commits of the agent stay as they are, and a run that fails commits nothing", async () => {
  const { repo, pool } = await completed("echo x > x; commit");
  expect(repo.git("log", "--format=%s", "mailchute/a")).toBe("work\nfirst");
  pool.drop("b", inWorktree("echo x > x; exit 64"));
  await pool.start(["--drain"]);
  await pool.error("b");
  expect(repo.git("log", "--format=%s", "mailchute/b")).toBe("first");
  expect(repo.git("show", "refs/mailchute/b/1:x")).toBe("x");
});

test("what is staged and was changed after that is saved before the commit", async () => {
  const { repo } = await completed("echo one > x; git add x; echo two > x");
  expect(repo.git("show", "mailchute/a:x")).toBe("two");
  const saved = repo.git("show", "-s", "--format=%B", "refs/mailchute/a/1");
  const [, index = ""] = /^index ([0-9a-f]+)$/m.exec(saved) ?? [];
  expect(repo.git("show", `${index}:x`)).toBe("one");
});

const HINDRANCES: readonly [what: string, script: string, reason: string][] = [
  ["a detached head", "git checkout -q --detach; echo x > x; commit", "is on commit"],
  ["another branch", "git checkout -qb other; echo x > x", "is on the branch other"],
  [
    "a merge that has stopped",
    "echo ours > README.md; commit; git checkout -qb other HEAD~1; echo theirs > README.md; commit; git checkout -q mailchute/a; git -c user.name=x -c user.email=x@x merge -q other || true",
    "a merge has not ended",
  ],
  [
    "a repository inside",
    "git init -q inner; cd inner; echo x > x; commit",
    "inner is a repository of its own",
  ],
];

test.each(HINDRANCES)(
  "%s keeps it from committing, and an alert says so",
  async (_, script, reason) => {
    const { pool, repo, worktree } = await completed(script);
    const alert = pool.alerts().find((one) => one["alert"] === "worktree");
    expect(alert?.["message"]).toContain("the branch mailchute/a lacks work of it");
    expect(alert?.["message"]).toContain(reason);
    expect(fs.existsSync(worktree("a"))).toBe(true);
    expect(repo.git("log", "-1", "--format=%s", "mailchute/a")).not.toBe("Work of a");
  },
);
