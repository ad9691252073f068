/** Work of tasks lands on a branch: a real pool, real programs, a real git. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";
/** Each task adds a line of its own, or all change the same line. */
const merged = (script: string, more: object = {}) =>
  inWorktree(script, { land: "merge", ...more });

test("the work is checked on top of the target, moves it, and worktree and branch go", async () => {
  const { pool, repo, worktree } = newPlace();
  const verify = ["sh", "-c", "test -e a.txt && git log --format=%s >> ../seen.log"];
  pool.drop("a", merged("echo a > a.txt; commit", { verify, title: "add a" }));
  await pool.start(["--drain"]);
  const record = await pool.result("a");
  expect(record).toMatchObject({
    landing: "pending",
    branch: "mailchute/a",
    target: TARGET,
    base: repo.git("rev-parse", "main"),
    diffstat: { files: 1, insertions: 1, deletions: 0 },
  });
  const landing = await pool.result("a.land");
  const commit = repo.git("rev-parse", TARGET);
  expect(landing.output).toMatchObject({ landing: "landed", task_id: "a", target: TARGET, commit });
  expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nfirst");
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
  expect(fs.existsSync(worktree("a"))).toBe(false);
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/heads")).toBe(
    `refs/heads/${TARGET}\nrefs/heads/main`,
  );
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
});

test("what a task left uncommitted lands, too, and a task that changed nothing has nothing to land", async () => {
  const { pool, repo } = newPlace();
  pool.drop("a", merged("echo a > a.txt", { title: "add a" }));
  pool.drop("b", merged("true"));
  await pool.start(["--drain"]);
  await pool.result("a.land");
  expect((await pool.result("b")).landing).toBe("nothing");
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("a");
  expect(repo.git("log", "--format=%s", TARGET)).toBe("add a\nfirst");
  expect(pool.results()).toHaveLength(3);
});

test("work that is only partly on the branch does not land, and lands when all of it is there", async () => {
  const { pool, repo, worktree } = newPlace();
  const script = "echo a > a.txt; commit; git checkout -q --detach; echo b > b.txt; commit";
  pool.drop("a", merged(script));
  await (await pool.start(["--drain"])).ended;
  const failed = await pool.error("a.land");
  const head = repo.git("-C", worktree("a"), "rev-parse", "--short=12", "HEAD");
  expect(failed.error).toContain(`is at the commit ${head}, which is not on mailchute/a`);
  expect(repo.git("for-each-ref", `refs/heads/${TARGET}`)).toBe("");
  repo.git("-C", worktree("a"), "checkout", "-q", "mailchute/a");
  repo.git("-C", worktree("a"), "merge", "-q", head);
  expect((await pool.run(["land", "a"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  await pool.result("a.land");
  expect(repo.git("ls-tree", "--name-only", TARGET)).toContain("a.txt\nb.txt");
});

test("a check that fails on top of the target keeps it from landing", async () => {
  const { pool, repo } = newPlace();
  repo.git("branch", TARGET);
  repo.git("worktree", "add", "-q", join(pool.dir, "other"), TARGET);
  fs.writeFileSync(join(pool.dir, "other", "forbidden.txt"), "x");
  repo.git("-C", join(pool.dir, "other"), "add", ".");
  repo.git("-C", join(pool.dir, "other"), "commit", "-qm", "other work");
  repo.git("worktree", "remove", join(pool.dir, "other"));
  const before = repo.git("rev-parse", TARGET);
  const verify = ["sh", "-c", "test ! -e forbidden.txt || { echo not both >&2; exit 3; }"];
  pool.drop("a", merged("echo a > a.txt; commit", { verify, base: "checkout" }));
  await pool.start(["--drain"]);
  const record = await pool.error("a.land");
  expect(record.error).toContain("not both");
  expect(repo.git("rev-parse", TARGET)).toBe(before);
});

test("what could not land does not count as landed when its record is removed; what landed does", async () => {
  const { pool } = newPlace();
  const verify = ["sh", "-c", "case $PWD in */.landing/*) exit 3;; esac"];
  const after = (id: string) => ({ exec: ["true"], metadata: { dependencies: [id] } });
  pool.drop("bad", merged("echo a > a.txt; commit", { verify }));
  pool.drop("good", merged("echo b > b.txt; commit"));
  await (await pool.start(["--drain"])).ended;
  await pool.error("bad.land");
  await pool.result("good.land");
  fs.rmSync(join(pool.failed, "bad.land_error.json"));
  fs.rmSync(join(pool.outbox, "good.land_result.json"));
  pool.drop("after-bad", after("bad"));
  pool.drop("after-good", after("good"));
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("after-good")).toMatchObject({ status: "completed" });
  expect(fs.readdirSync(pool.inbox)).toContain("after-bad.json");
  const { landing } = JSON.parse((await pool.run(["show", "bad", "--json"])).stdout);
  expect(landing).toMatchObject({
    state: "failed",
    why: expect.stringContaining("mailchute land"),
  });
  expect(JSON.parse((await pool.run(["show", "good", "--json"])).stdout).landing).toMatchObject({
    state: "landed",
  });
});

test("a check that a signal ends is tried again, and its work lands", async () => {
  const { pool, repo } = newPlace();
  const seen = join(pool.dir, "seen");
  // The check of the task, then that of the landing, which a signal ends the first time.
  const verify = ["sh", "-c", `echo x >> ${seen}; [ $(wc -l < ${seen}) -ne 2 ] || kill -KILL $$`];
  pool.drop("a", merged("echo a > a.txt; commit", { verify }));
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("a.land")).toMatchObject({ attempts: 2 });
  expect(fs.readFileSync(seen, "utf8")).toBe("x\nx\nx\n");
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("a");
});

test("a hook that came in with the branch does not run, and a run that changed hooks does not land", async () => {
  const { pool, repo } = newPlace();
  const hook = "mkdir -p hooks; printf '#!/bin/sh\\ntouch ../../../ran\\n' > hooks/post-checkout";
  const all = `${hook}; chmod +x hooks/*; for h in post-merge post-rewrite pre-rebase reference-transaction post-commit; do cp hooks/post-checkout hooks/$h; done`;
  pool.drop("a", merged(`${all}; commit`));
  pool.drop(
    "b",
    merged("git config core.hooksPath hooks; echo b > b.txt", {
      metadata: { dependencies: ["a"] },
    }),
  );
  await pool.start(["--drain"]);
  await pool.result("a.land");
  const told = await pool.error("b.land");
  expect(told.error).toContain("changed settings or hooks");
  expect(repo.git("ls-tree", "--name-only", "-r", TARGET)).toContain("hooks/post-merge");
  expect(repo.git("ls-tree", "--name-only", TARGET)).not.toContain("b.txt");
  const ran = fs.readdirSync(pool.dir, { recursive: true, encoding: "utf8" });
  expect(ran.filter((name) => name.endsWith("/ran") || name === "ran")).toEqual([]);
});

test("a target that a person has checked out moves only when that is allowed and the tree is clean", async () => {
  const { pool, repo } = newPlace();
  fs.writeFileSync(join(repo.dir, "README.md"), "a person is writing\n");
  pool.drop("a", merged("echo a > a.txt; commit", { target: "main", land_into_checkout: true }));
  pool.drop("b", merged("echo b > b.txt; commit", { target: "main" }));
  await pool.start();
  await pool.result("a");
  await pool.result("b");
  const isTold = async (id: string, why: string): Promise<void> => {
    await expect
      .poll(async () => (await pool.run(["show", id])).stdout, { timeout: 120_000 })
      .toContain(why);
  };
  await isTold("a.land", "which has uncommitted changes");
  await isTold("b.land", "allow it with land_into_checkout");
  // It looks again every ten seconds, and is at work for a moment then.
  const poll = { timeout: 60_000 };
  const listed = async () => (await pool.run(["ls", "--state-is", "held"])).stdout;
  await expect.poll(listed, poll).toMatch(/^b\.land +held:waits-to-land /m);
  const waited = async () => (await pool.run(["wait", "b", "--timeout", "100ms"])).stderr;
  await expect
    .poll(waited, poll)
    .toMatch(
      /b has not settled in time: it has not landed: main is checked out .*land_into_checkout/,
    );
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
  repo.git("checkout", "-q", "README.md");
  await pool.result("a.land", 30_000);
  expect(fs.readFileSync(join(repo.dir, "a.txt"), "utf8")).toBe("a\n");
  expect(repo.git("status", "--porcelain")).toBe("");
  repo.git("checkout", "-q", "--detach");
  await pool.result("b.land", 30_000);
  expect(repo.git("show", "main:b.txt")).toBe("b");
  expect(fs.existsSync(join(repo.dir, "b.txt"))).toBe(false);
});

test("a file of a person that is in no commit is not replaced in a checkout, also an ignored one; the landing says which", async () => {
  const { pool, repo } = newPlace();
  const mine = { "new.txt": "of a person\n", "secret.log": "ignored\n" };
  for (const [name, text] of Object.entries(mine)) fs.writeFileSync(join(repo.dir, name), text);
  const into = {
    target: "main",
    land_into_checkout: true,
    verify: ["sh", "-c", "echo x >> $SEEN"],
  };
  const seen = join(pool.dir, "seen");
  const more = { ...into, env: { SEEN: seen } };
  const write = (name: string) => `echo agent > ${name}; git add -f ${name}; commit`;
  pool.drop("a", merged(write("new.txt"), more));
  pool.drop("b", merged(write("secret.log"), more));
  await pool.start();
  for (const [id, name] of [
    ["a", "new.txt"],
    ["b", "secret.log"],
  ])
    await expect
      .poll(async () => (await pool.run(["show", `${id}.land`])).stdout, { timeout: 120_000 })
      .toContain(`where ${name} would be replaced, and is in no commit: move it away`);
  for (const [name, text] of Object.entries(mine))
    expect(fs.readFileSync(join(repo.dir, name), "utf8")).toBe(text);
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
  // It is said before the checks of the landing, which may take long: only those of the runs have run.
  expect(fs.readFileSync(seen, "utf8")).toBe("x\nx\n");
  for (const name of Object.keys(mine)) fs.rmSync(join(repo.dir, name));
  for (const id of ["a.land", "b.land"]) await pool.result(id, 30_000);
  expect(fs.readFileSync(join(repo.dir, "secret.log"), "utf8")).toBe("agent\n");
  expect(repo.git("status", "--porcelain")).toBe("");
});

test("a file that a person makes while the work is checked is not replaced", async () => {
  const { pool, repo } = newPlace();
  const file = join(repo.dir, "new.txt");
  const verify = ["sh", "-c", `case $PWD in */.landing/*) echo mine > '${file}' ;; esac`];
  pool.drop(
    "a",
    merged("echo agent > new.txt; commit", { target: "main", land_into_checkout: true, verify }),
  );
  await pool.start();
  await expect
    .poll(async () => (await pool.run(["show", "a.land"])).stdout, { timeout: 120_000 })
    .toContain("where new.txt would be replaced");
  expect(fs.readFileSync(file, "utf8")).toBe("mine\n");
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
});

test("land: exec hands the branch to a program of the user, and it stays", async () => {
  const { pool, repo } = newPlace();
  const command = [
    "sh",
    "-c",
    'echo "$MAILCHUTE_BRANCH $MAILCHUTE_BASE $MAILCHUTE_TARGET"; git rev-parse HEAD',
  ];
  pool.drop(
    "a",
    inWorktree("echo a > a.txt; commit", { land: "exec", land_command: command, target: "main" }),
  );
  pool.drop("b", inWorktree("echo b > b.txt; commit", { land: "exec" }));
  await pool.start(["--drain"]);
  const record = await pool.result("a.land");
  expect(record.output).toMatchObject({ landing: "handed_over", branch: "mailchute/a" });
  const log = fs.readFileSync(join(pool.state, "runs", record.run ?? "", "stdout.log"), "utf8");
  const tip = repo.git("rev-parse", "mailchute/a");
  expect(log).toBe(`mailchute/a ${repo.git("rev-parse", "main")} main\n${tip}\n`);
  expect((await pool.error("b")).error).toContain("land: exec has no program");
});

test("work that a person has brought in by a squash merge counts as landed", async () => {
  const { pool, repo } = newPlace();
  const script = "echo 1 > a.txt; commit; echo 2 > a.txt; commit";
  pool.drop("a", inWorktree(script, { land: "branch", target: "main" }));
  await (await pool.start(["--drain"])).ended;
  repo.git("merge", "-q", "--squash", "mailchute/a");
  repo.git("commit", "-qm", "squashed");
  const main = repo.git("rev-parse", "main");
  repo.git("checkout", "-q", "--detach");
  expect((await pool.run(["land", "a"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  expect((await pool.result("a.land")).output).toMatchObject({ landing: "landed", commit: main });
  expect(repo.git("rev-parse", "main")).toBe(main);
});
