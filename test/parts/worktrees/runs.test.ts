/** Tasks that work in git worktrees of their own: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inWorktree, newPlace } from "./place.ts";

test("it works on a branch of its own, and a person's tree is not touched", async () => {
  const { pool, repo, worktree } = newPlace();
  fs.writeFileSync(join(repo.dir, "mine.txt"), "a person writes here");
  pool.drop("a", inWorktree("echo new > new.txt; commit; pwd"));
  await pool.start(["--drain"]);
  const record = await pool.result("a");
  expect(record.output).toContain(worktree("a"));
  expect(repo.git("show", "mailchute/a:new.txt")).toBe("new");
  expect(repo.git("status", "--porcelain")).toBe("?? mine.txt");
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
  // Its commit is on no other branch, so it stays.
  expect(fs.existsSync(worktree("a"))).toBe(true);
});

test("a worktree in which nothing was left goes with its task, and so does its branch", async () => {
  const { pool, repo, worktree } = newPlace();
  pool.drop("a", inWorktree("cat README.md"));
  pool.drop("b", inWorktree("exit 64"));
  await pool.start(["--drain"]);
  await pool.result("a");
  await pool.error("b");
  for (const id of ["a", "b"]) expect(fs.existsSync(worktree(id))).toBe(false);
  expect(repo.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
});

test("verify and expect_files look at the worktree, in the folder that cwd names", async () => {
  const { pool, repo, worktree } = newPlace();
  fs.mkdirSync(join(repo.dir, "sub"));
  repo.commit({ "sub/there.txt": "x" });
  const checks = { verify: ["test", "-e", "made.txt"], expect_files: ["made.txt"] };
  pool.drop("a", inWorktree("pwd; touch made.txt", { cwd: "repo/sub", ...checks }));
  await pool.start(["--drain"]);
  expect((await pool.result("a")).output).toBe(`${join(worktree("a"), "sub")}\n`);
});

test("setup makes a new worktree ready once; a retry finds its work as it was", async () => {
  const { pool, worktree } = newPlace();
  const script = "test -e done.txt || { echo half > done.txt; exit 1; }; cat done.txt setup.log";
  const setup = [["sh", "-c", "echo set up >> setup.log"]];
  pool.drop("a", inWorktree(script, { setup, max_attempts: 2 }));
  await pool.start(["--drain"]);
  expect((await pool.result("a")).output).toBe("half\nset up\n");
  expect(fs.readFileSync(join(worktree("a"), "done.txt"), "utf8")).toBe("half\n");
});

test("a setup that fails fails the task with a kind of its own, and the agent does not run", async () => {
  const { pool } = newPlace();
  pool.drop("a", inWorktree("touch ran", { setup: ["sh", "-c", "echo no network >&2; exit 3"] }));
  await pool.start(["--drain"]);
  const record = await pool.error("a");
  expect(record).toMatchObject({ kind: "setup", code: "ErrSetup", exit_code: 3 });
  expect(record.error).toContain("no network");
});

test("the settings of an agent say worktree and setup for its tasks", async () => {
  const { pool, worktree } = newPlace(`
agents:
  - {name: coder, kind: exec, program: sh, args: ["-ec", "pwd; cat setup.log"], worktree: auto, setup: [sh, -c, "echo agent > setup.log"]}
`);
  pool.drop("a", { agent: "coder", prompt: "do it", cwd: "repo" });
  pool.drop("b", {
    agent: "coder",
    prompt: "do it",
    cwd: "repo",
    worktree: "none",
    max_attempts: 1,
  });
  await pool.start(["--drain"]);
  expect((await pool.result("a")).output).toBe(`${worktree("a")}\nagent\n`);
  expect((await pool.error("b")).kind).toBe("exit");
});

test("twenty at once on one repository: no lock error, distinct ports, each on its own branch", async () => {
  const { pool, repo } = newPlace("processes: 2\n");
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const script = 'echo "$MAILCHUTE_PORT_BASE"; echo x > $MAILCHUTE_TASK_ID.txt; commit';
  for (const id of ids) pool.drop(id, inWorktree(script));
  await pool.start(["--drain", "--workers", "20"]);
  const records = await Promise.all(ids.map((id) => pool.result(id)));
  const ports = records.map(({ output }) => Number(String(output)));
  expect(new Set(ports.map((port) => Math.floor(port / 20))).size).toBe(20);
  expect(Math.min(...ports)).toBeGreaterThan(1024);
  expect(pool.errors()).toEqual([]);
  expect(pool.alerts()).toEqual([]);
  for (const id of ids) expect(repo.git("show", `mailchute/${id}:${id}.txt`)).toBe("x");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(21);
  expect(repo.git("fsck", "--strict")).toBe("");
});

test("a run that changes the settings of the repository is marked, and its filter does not run", async () => {
  const { pool, repo } = newPlace();
  const filter =
    'git config filter.bad.clean "touch $PWD/../ran; cat"; echo "* filter=bad" > .gitattributes';
  pool.drop("a", inWorktree(`${filter}; echo text > new.txt`));
  await pool.start(["--drain"]);
  await pool.result("a");
  const alert = pool.alerts().find((one) => one["alert"] === "repository_settings");
  expect(alert?.["message"]).toContain("filter.bad.clean");
  expect(repo.git("cat-file", "-p", "refs/mailchute/a/settings-changed")).toBe("filter.bad.clean");
  // The filter is not obeyed, so the work is on the branch as it is.
  expect(repo.git("show", "mailchute/a:new.txt")).toBe("text");
  expect(fs.existsSync(join(pool.state, "worktrees", "ran"))).toBe(false);
});

test("a line of a batch and a function have no worktree, and say so", async () => {
  const { pool } = newPlace("agents: [{name: fn, kind: module, module: fn.mjs}]\n");
  fs.writeFileSync(join(pool.state, "fn.mjs"), "export default () => 1;\n");
  pool.drop("a", { agent: "fn", prompt: "x", cwd: "repo", worktree: "auto" });
  fs.writeFileSync(join(pool.inbox, "b.ndjson"), `${JSON.stringify(inWorktree("true"))}\n`);
  await pool.start(["--drain"]);
  expect((await pool.error("a")).error).toContain("worktree: the agent fn is a function");
  await pool.result("b");
  const lines = fs.readFileSync(join(pool.outbox, "b_results.ndjson"), "utf8");
  expect(lines).toContain("a line of a batch has none");
});

test("a run whose work cannot be saved has ended, too: a later change of the settings is not its own", async () => {
  const { pool, repo } = newPlace();
  const refs =
    "refs=$(git rev-parse --git-common-dir)/refs/mailchute/a; rm -r $refs; echo x > $refs";
  pool.drop("a", inWorktree(`echo x > x; ${refs}; exit 64`));
  await pool.start();
  expect((await pool.error("a"))["work_left"]).toHaveLength(1);
  const dir = join(pool.dir, "user", "mailchute", "git");
  const [name = ""] = fs.readdirSync(dir);
  const kept = JSON.parse(fs.readFileSync(join(dir, name, "kept.json"), "utf8")) as object;
  expect(kept).toMatchObject({ common_dir: fs.realpathSync(join(repo.dir, ".git")), runs: [] });
});
