/** Any repository works, or a run says what is wrong before anything is started. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ErrorRecord, ResultRecord } from "../../../src/core/task.ts";
import { newRepository, repositoryAt } from "../../support/git-repository.ts";
import { canMount, smallDisk } from "../../support/small-disk.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

takeSome();

async function done(place: Place, script: string, more: object = {}): Promise<ResultRecord> {
  place.pool.drop("a", inWorktree(script, more));
  await place.pool.start(["--drain"]);
  return place.pool.result("a");
}

async function refused(place: Place, cwd: string, more: object = {}): Promise<ErrorRecord> {
  place.pool.drop("a", inWorktree('touch "$MAILCHUTE_STATE/started"', { cwd, ...more }));
  await place.pool.start(["--drain"]);
  const record = await place.pool.error("a");
  // Another run would fail in the same way.
  expect(record).toMatchObject({ kind: "worktree", code: "ErrWorktree", attempts: 1 });
  expect(fs.existsSync(join(place.pool.state, "started"))).toBe(false);
  return record;
}

test("a folder in no repository, a repository without a commit, a folder in no commit: said before the start", async () => {
  const nowhere = newPlace();
  fs.mkdirSync(join(nowhere.pool.dir, "plain"));
  expect((await refused(nowhere, "plain")).error).toMatch(
    /is in no git repository; name the repository as cwd/,
  );

  const empty = newPlace();
  fs.mkdirSync(join(empty.pool.dir, "empty"));
  repositoryAt(join(empty.pool.dir, "empty")).git("init", "--quiet");
  expect((await refused(empty, "empty")).error).toMatch(/no commit yet; make the first commit/);

  const untracked = newPlace();
  fs.mkdirSync(join(untracked.repo.dir, "new"));
  expect((await refused(untracked, "repo/new")).error).toMatch(/new\/ is in no commit/);
});

test("the worktree of a sparse repository is sparse", async () => {
  const place = newPlace();
  for (const name of ["src", "docs"]) fs.mkdirSync(join(place.repo.dir, name));
  place.repo.commit({ "src/s.txt": "s\n", "docs/d.md": "d\n" });
  place.repo.git("sparse-checkout", "init", "--cone");
  place.repo.git("sparse-checkout", "set", "src");
  place.pool.drop("a", inWorktree("ls > ls.txt"));
  await (await place.pool.start(["--drain"])).ended;
  expect(place.repo.git("show", "mailchute/a:ls.txt").split("\n")).not.toContain("docs");
  expect(place.repo.git("show", "mailchute/a:docs/d.md")).toBe("d");
});

test("a branch that a person has checked out, and a directory that is in the way: said, and left alone", async () => {
  const taken = newPlace();
  taken.repo.git("checkout", "--quiet", "-b", "mailchute/a");
  expect((await refused(taken, "repo")).error).toMatch(
    /already checked out|already used by worktree/,
  );
  expect(taken.repo.git("branch", "--show-current")).toBe("mailchute/a");

  const inTheWay = newPlace();
  fs.mkdirSync(inTheWay.worktree("a"), { recursive: true });
  fs.writeFileSync(join(inTheWay.worktree("a"), "mine.txt"), "mine");
  expect((await refused(inTheWay, "repo")).error).toMatch(/is no worktree of .*; move it away/);
  expect(fs.readFileSync(join(inTheWay.worktree("a"), "mine.txt"), "utf8")).toBe("mine");
});

test("files under LFS without git-lfs: said before the start; with its filter they are there", async () => {
  const without = newPlace();
  without.repo.commit({ ".gitattributes": "*.bin filter=lfs\n", "a.bin": "pointer\n" });
  expect((await refused(without, "repo")).error).toMatch(/git LFS.*install git-lfs/);

  const gone = newPlace();
  gone.repo.commit({ ".gitattributes": "*.bin filter=lfs\n", "a.bin": "pointer\n" });
  gone.repo.git("config", "filter.lfs.process", "git-lfs-gone filter-process");
  gone.repo.git("config", "filter.lfs.required", "true");
  const { error } = await refused(gone, "repo");
  expect(error).toMatch(/git LFS.* filter git-lfs-gone is not there; install git-lfs/);

  const place = newPlace();
  // A stand-in for git-lfs: it keeps files in upper case.
  place.repo.git("config", "filter.lfs.clean", "tr a-z A-Z");
  place.repo.git("config", "filter.lfs.smudge", "tr A-Z a-z");
  place.repo.commit({ ".gitattributes": "*.bin filter=lfs\n", "a.bin": "pointer\n" });
  expect(place.repo.git("show", "HEAD:a.bin")).toBe("POINTER");
  expect((await done(place, "cat a.bin; echo more > a.bin")).output).toBe("pointer\n");
  expect(place.repo.git("show", "mailchute/a:a.bin")).toBe("MORE");
});

test("a bare repository, a shallow one, paths with spaces, a branch with odd characters", async () => {
  const place = newPlace();
  const { dir } = place.pool;
  place.repo.commit({ "second.txt": "2\n" });
  const bare = join(dir, "a bare one.git");
  execFileSync("git", ["clone", "--quiet", "--bare", place.repo.dir, bare]);
  const shallow = join(dir, "shallow");
  execFileSync("git", ["clone", "--quiet", "--depth=1", `file://${place.repo.dir}`, shallow]);
  const odd = newRepository(join(dir, "odd 'place' \"ü\""));
  odd.git("checkout", "--quiet", "-b", "wei-rd/#ü.branch'x");
  odd.commit({ "ü 'x'.txt": "odd\n" });
  const script = "ls; echo new > 'new file ü.txt'";
  place.pool.drop("bare", inWorktree(script, { cwd: "a bare one.git" }));
  place.pool.drop("shallow", inWorktree(script, { cwd: "shallow" }));
  // What is staged and was changed after that is saved before the rest is committed.
  const staged = `echo staged > 'new file ü.txt'; git add .; ${script.replace("ls; ", "")}`;
  place.pool.drop("odd.lock", inWorktree(`ls; ${staged}`, { cwd: "odd 'place' \"ü\"" }));
  await place.pool.start(["--drain"]);
  for (const id of ["bare", "shallow"])
    expect((await place.pool.result(id)).output).toBe("README.md\nsecond.txt\n");
  expect((await place.pool.result("odd.lock")).output).toBe("README.md\nü 'x'.txt\n");
  // `.lock` cannot end the name of a branch.
  expect(odd.git("show", "mailchute/odd.lock=:new file ü.txt")).toBe("new");
  expect(odd.git("show", "refs/mailchute/odd.lock=/1:new file ü.txt")).toBe("new");
  const { stdout } = await place.pool.run(["rescue", "odd.lock", "--branch", "back"]);
  expect(stdout).toBe("back\nback.index\n");
  expect(odd.git("show", "back:new file ü.txt")).toBe("new");
  for (const id of ["bare", "shallow", "odd.lock"])
    expect((await place.pool.run(["worktrees", "clean", id])).code).toBe(0);
  expect(execFileSync("git", ["-C", bare, "fsck"], { encoding: "utf8" })).toBe("");
});

test("work lands in a bare repository, a shallow one, paths with spaces, a target with odd characters", async () => {
  const place = newPlace();
  const { dir } = place.pool;
  place.repo.commit({ "second.txt": "2\n" });
  execFileSync("git", ["clone", "--quiet", "--bare", place.repo.dir, join(dir, "a bare one.git")]);
  const from = ["--depth=1", `file://${place.repo.dir}`];
  execFileSync("git", ["clone", "--quiet", ...from, join(dir, "shallow")]);
  const targets = ["mailchute/integration", "wei-rd/#ü.branch'x"];
  const places = ["a bare one.git", "shallow", "odd 'place' \"ü\""];
  newRepository(join(dir, places[2] ?? ""));
  const ids: string[] = [];
  for (const [p, cwd] of places.entries())
    for (const [t, target] of targets.entries()) {
      ids.push(`t${p}${t}`);
      const script = `echo ${p}${t} > 'new file.txt'`;
      // Both go to the same target, so the second one is rebased.
      for (const more of ["", "-b"])
        place.pool.drop(
          `t${p}${t}${more}`,
          inWorktree(script.replace("file", `file${more}`), {
            cwd,
            land: "merge",
            target,
            verify: ["true"],
          }),
        );
    }
  await (await place.pool.start(["--drain"])).ended;
  expect(place.pool.errors()).toEqual([]);
  for (const id of ids) {
    const { branch, target } = (await place.pool.result(`${id}.land`)).output as Record<
      string,
      string
    >;
    expect(branch).toBe(`mailchute/${id}`);
    const at = repositoryAt(join(dir, places[Number(id[1])] ?? ""));
    expect(at.git("show", `${target}:new file.txt`)).toBe(id.slice(1));
    expect(at.git("show", `${target}:new file-b.txt`)).toBe(id.slice(1));
    expect(at.git("rev-list", "--count", "--merges", target ?? "")).toBe("0");
    expect(at.git("fsck", "--connectivity-only", "--no-dangling")).toBe("");
  }
});

test("a target that moves while the work is checked: it is checked again on top of that, and both are there", async () => {
  const place = newPlace();
  const { repo, pool } = place;
  repo.git("branch", "release");
  const seen = join(pool.dir, "seen");
  // Each check but the last one sees the target move after it has begun.
  const verify = `case $PWD in */.landing/*) ;; *) exit 0 ;; esac
    ls >> "${seen}"; echo end >> "${seen}"; n=$(grep -c end "${seen}"); [ $n -lt 3 ] || exit 0
    cd "${repo.dir}"; git checkout -q release; echo $n > person$n.txt; git add .
    git -c user.name=p -c user.email=p@x commit -qm "person $n"; git checkout -q main`;
  await done(place, "echo x > x.txt", {
    land: "merge",
    target: "release",
    verify: ["sh", "-ec", verify],
  });
  await pool.result("a.land");
  expect(repo.git("ls-tree", "--name-only", "release").split("\n")).toEqual([
    ".gitignore",
    "README.md",
    "person1.txt",
    "person2.txt",
    "x.txt",
  ]);
  expect(fs.readFileSync(seen, "utf8")).toMatch(/person1.txt\nperson2.txt\nx.txt\nend\n$/);
});

test("submodules: setup fetches them; one with work of its own keeps the worktree, an unchanged one does not", async () => {
  const place = newPlace();
  const inner = newRepository(join(place.pool.dir, "inner"));
  const allow = ["-c", "protocol.file.allow=always"];
  place.repo.git(...allow, "submodule", "--quiet", "add", inner.dir, "sub");
  place.repo.commit({}, "with a submodule");
  const setup = ["git", ...allow, "submodule", "--quiet", "update", "--init"];
  place.pool.drop("plain", inWorktree("ls sub"));
  place.pool.drop("kept", inWorktree("ls sub", { setup }));
  place.pool.drop(
    "work",
    inWorktree("cd sub; git checkout -qb mine; echo x > x; commit", { setup }),
  );
  await place.pool.start(["--drain"]);
  expect((await place.pool.result("plain")).output).toBe("");
  expect((await place.pool.result("kept")).output).toBe("README.md\n");
  await place.pool.result("work");
  for (const id of ["plain", "kept"]) expect(fs.existsSync(place.worktree(id)), id).toBe(false);
  const { stdout } = await place.pool.run(["worktrees", "clean", "work"]);
  expect(stdout).toContain("sub is a repository of its own");
  expect(fs.readFileSync(join(place.worktree("work"), "sub", "x"), "utf8")).toBe("x\n");
});

test("a target that moves, and a rebase that stops: the branch stays where it began, the rebase is saved", async () => {
  const place = newPlace();
  const script =
    'echo ours > README.md; commit; cd "$MAILCHUTE_STATE/../repo"; echo theirs > README.md; commit; cd -; git -c user.name=x -c user.email=x@x rebase -q main || true';
  await done(place, script);
  const { stdout } = await place.pool.run(["worktrees", "clean"]);
  expect(stdout).toContain("a rebase that was not ended");
  expect((await place.pool.run(["worktrees", "clean", "a"])).code).toBe(0);
  expect(place.repo.git("show", "mailchute/a:README.md")).toBe("ours");
  await place.pool.run(["rescue", "a", "--branch", "back"]);
  expect(place.repo.git("show", "back:README.md")).toContain("theirs");
});

test("no hook of the repository runs in our calls", async () => {
  const place = newPlace();
  for (const hook of ["post-checkout", "reference-transaction", "post-index-change"])
    fs.writeFileSync(
      join(place.repo.dir, ".git", "hooks", hook),
      `#!/bin/sh\ntouch "${place.pool.dir}/hook-ran"\n`,
      { mode: 0o755 },
    );
  const { pool } = place;
  pool.drop("a", inWorktree("echo x > x.txt"));
  const running = pool.spawn(["run", "--drain"]);
  await running.ended;
  await pool.result("a");
  await pool.run(["worktrees", "clean", "a"]);
  expect(fs.existsSync(join(pool.dir, "hook-ran"))).toBe(false);
});

test.skipIf(!canMount())(
  "on a full disk the run waits, and goes on when there is room",
  async () => {
    const disk = smallDisk();
    const place = newPlace(`worktrees_dir: ${join(disk.dir, "worktrees")}\n`);
    place.repo.commit({ "large.txt": "x".repeat(300_000) });
    disk.fill(20);
    place.pool.drop("a", inWorktree("wc -c < large.txt"));
    await place.pool.start();
    const isDeferred = (): boolean =>
      place.pool
        .events()
        .some((one) => JSON.stringify(one).includes("its worktree cannot be made"));
    await waitFor(isDeferred, { what: "a run that waits for room" });
    expect(place.pool.errors()).toEqual([]);
    disk.free();
    expect((await place.pool.result("a")).output).toBe("300000\n");
    await place.pool.stop();
  },
);

test.skipIf(!canMount())(
  "on a full disk a completed run waits until its work can be saved",
  async () => {
    const disk = smallDisk();
    const { pool } = newPlace();
    const repo = newRepository(join(disk.dir, "repo"));
    const isTold = (text: string) => (): boolean =>
      pool.events().some((one) => JSON.stringify(one).includes(text));
    // Its objects go to the small disk, the worktree is elsewhere.
    const script = "head -c 300000 /dev/urandom > large.bin";
    disk.fill(20);
    pool.drop("a", inWorktree(script, { cwd: repo.dir, land: "branch" }));
    await pool.start();
    await waitFor(isTold("its work could not be saved"), { what: "a run that waits for room" });
    expect([pool.errors(), pool.results()]).toEqual([[], []]);
    disk.free();
    expect(await pool.result("a")).toMatchObject({ landing: "branch", attempts: 1 });
    expect(repo.git("cat-file", "-s", "mailchute/a:large.bin")).toBe("300000");
    expect(pool.errors()).toEqual([]);
    await pool.stop();
  },
);
