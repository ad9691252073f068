/** Pipes that a run or another program puts in the place of a file of a repository or a plan: no process waits for their other end. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace } from "../parts/worktrees/place.ts";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

test("a pipe as commondir of a repository keeps neither the supervisor nor its end", async () => {
  const pool = newPool({ config: QUICK_CONFIG });
  for (const name of ["work", "fake"]) fs.mkdirSync(join(pool.dir, name));
  fs.writeFileSync(join(pool.dir, "work", ".git"), `gitdir: ${join(pool.dir, "fake")}\n`);
  execFileSync("mkfifo", [join(pool.dir, "fake", "commondir")]);
  await pool.start();
  pool.drop("owner", { exec: ["true"], cwd: "work", owns: { write: ["src"] } });
  pool.drop("other", { exec: ["true"] });
  await Promise.all([pool.result("owner"), pool.result("other")]);
  expect((await pool.stop()).exitCode).toBe(0);
});

test.each(["hooks/post-commit", "hooks/post-merge"])(
  "a run that makes a pipe of %s ends, and the change is told",
  async (hook) => {
    const { pool } = newPlace();
    pool.drop("a", inWorktree(`mkfifo "$(git rev-parse --git-common-dir)/${hook}"`));
    await pool.start(["--drain"]);
    await pool.result("a");
    expect(JSON.stringify(pool.alerts())).toContain(hook);
  },
);

test.each([
  "$GIT/info/attributes",
  "$GIT/info/exclude",
  ".gitignore",
  "README.md; mkfifo .gitattributes",
])(
  "a git that would wait for a pipe at %s is ended, the path is told, and the pool goes on",
  async (path) => {
    const { pool, worktree } = newPlace();
    const script = `echo more >> new.txt; GIT=$(git rev-parse --git-common-dir); rm -f "${path.split(";")[0]}"; mkfifo ${path}`;
    pool.drop("a", inWorktree(script));
    pool.drop("b", { exec: ["true"] });
    await pool.start(["--drain"]);
    await pool.result("b");
    const text = JSON.stringify([
      await waitFor(
        () => pool.errors()[0] ?? pool.results().find(({ task_id }) => task_id === "a"),
        { what: "the end of a" },
      ),
      pool.alerts(),
    ]);
    expect(text).toMatch(/info\/(?:attributes|exclude)|\.gitignore|\.gitattributes/);
    expect(fs.readFileSync(join(worktree("a"), "new.txt"), "utf8")).toBe("more\n");
  },
);

test("commands that look at a plan do not wait for a pipe in its place", async () => {
  const pool = newPool();
  execFileSync("mkfifo", [join(pool.state, "roadmap.yaml")]);
  for (const verb of ["show", "why"]) {
    const { code, stderr } = await pool.run([verb, "x"]);
    expect(code, stderr).toBe(3);
    expect(stderr).toContain("ErrTaskNotFound");
  }
});
