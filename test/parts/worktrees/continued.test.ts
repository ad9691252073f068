/** A task that goes on in the worktree of another one: one of them at a time, whatever is killed. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canCountSteps, countingGit } from "../../support/counting-git.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace } from "./place.ts";

takeSome();

/** Says so in the file `$OVER` when another program works there at the same time. */
const ALONE = `
if [ -e .pid ] && grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$(cat .pid)/status" 2>/dev/null; then echo two >> "$OVER"; fi
echo $$ > .pid; sleep 0.2; [ "$(cat .pid)" = $$ ] || echo two >> "$OVER"
rm .pid; echo "$MAILCHUTE_TASK_ID" >> who.txt; pwd`;

test("tasks that share a worktree work there one at a time, also while workers are killed", async () => {
  const { pool, repo, worktree } = newPlace();
  const over = join(pool.dir, "over");
  pool.drop("a", inWorktree("echo a > who.txt"));
  await pool.start();
  await pool.result("a");
  const ids = ["b", "c", "d", "e"];
  const more = { metadata: { worktree_of: "a" }, max_attempts: 20, env: { OVER: over } };
  for (const id of ids) pool.drop(id, inWorktree(ALONE, more));
  await waitFor(() => fs.existsSync(join(worktree("a"), ".pid")), { what: "one that works there" });
  for (const { pid } of pool.workers()) process.kill(pid, "SIGKILL");
  await waitFor(() => pool.settledCount() === 5, { what: "all of them", timeoutMs: 60_000 });
  for (const id of ids) expect((await pool.result(id)).output).toBe(`${worktree("a")}\n`);
  expect(fs.existsSync(over)).toBe(false);
  const lines = repo.git("show", "mailchute/a:who.txt").split("\n");
  expect(new Set(lines)).toEqual(new Set(["a", ...ids]));
  const made = fs.readdirSync(join(pool.state, "worktrees"));
  expect(made.filter((name) => !name.startsWith("."))).toEqual(["a"]);
});

test("a worktree in which another task goes on stays, and a bad worktree_of is refused", async () => {
  const { pool, ask } = newPlace();
  const gate = join(pool.dir, "gate");
  pool.drop("a", inWorktree("echo a > who.txt"));
  await pool.start();
  await pool.result("a");
  const waits = `touch began; while [ ! -e '${gate}' ]; do sleep 0.1; done; rm began`;
  pool.drop("b", inWorktree(waits, { metadata: { worktree_of: "a" } }));
  await waitFor(() => fs.existsSync(join(pool.state, "worktrees", "a", "began")), { what: "b" });
  const { json } = await ask("worktrees", "clean", "a");
  expect(json).toMatchObject({ worktrees: [{ reasons: ["its task has not ended"] }] });
  fs.writeFileSync(gate, "");
  await pool.result("b");
  pool.drop("c", inWorktree("true", { metadata: { worktree_of: "../x" } }));
  expect((await pool.error("c")).error).toContain('metadata.worktree_of: "../x"');
});

test.skipIf(!canCountSteps())(
  "a git that was killed while it brought saved files back leaves no lock that keeps the next run from it",
  async () => {
    const { pool, env, repo } = newPlace();
    pool.drop("a", inWorktree("echo work > x.txt; exit 64"));
    await (await pool.start(["--drain"])).ended;
    await pool.error("a");
    expect((await pool.run(["worktrees", "clean", "a"])).code).toBe(0);
    const git = countingGit(join(pool.dir, "counted"), env);
    git.arm([{ at: "read-tree", moment: "within", victim: "caller", step: 1 }]);
    const more = { metadata: { worktree_of: "a" }, max_attempts: 2 };
    pool.drop("b", inWorktree("git status --porcelain; cat x.txt", more));
    await (await pool.start(["--drain"])).ended;
    expect(git.calls().filter(({ isKilled }) => isKilled)).toHaveLength(1);
    expect((await pool.result("b")).output).toBe("?? x.txt\nwork\n");
    expect(repo.git("show", "mailchute/a:x.txt")).toBe("work");
  },
);
