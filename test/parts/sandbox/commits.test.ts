/** git behind walls: a run commits in its worktree, and what it has done is in the repository when it has ended. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { saidBy, type WalledPlace, walledPlace } from "./place.ts";

/** A program of shell commands. */
const sh = (text: string): string =>
  `require('node:child_process').execFileSync('sh', ['-ec', ${JSON.stringify(text)}], {stdio: 'inherit'})`;

function begin(skip: (why: string) => void, settings = ""): WalledPlace {
  const env = { GIT_CONFIG_NOSYSTEM: "1", GIT_AUTHOR_NAME: "x" };
  const place = walledPlace(`{}\n${settings}`, env);
  if (typeof place === "string") {
    skip(place);
    throw new Error(place);
  }
  fs.writeFileSync(
    join(place.home, ".gitconfig"),
    "[user]\nname = A\nemail = a@example.invalid\n[safe]\ndirectory = *\n",
  );
  place.own();
  return place;
}

const gitOf =
  ({ repository }: WalledPlace) =>
  (...args: string[]): string =>
    repository.git("-c", "safe.directory=*", ...args);

it("commits, staged files, another branch, a stash and a pack of a run are in the repository", async ({
  skip,
}) => {
  const place = begin(skip);
  const { pool, submit } = place;
  const git = gitOf(place);
  await pool.start();
  submit(
    "commits",
    sh("echo 1 > a; git add a; git commit -qm mine; echo 2 > b; git add b; git status --short"),
  );
  expect((await pool.result("commits")).output).toBe("A  b\n");
  expect(git("log", "--format=%s", "mailchute/commits").split("\n")).toHaveLength(3);
  expect(git("show", "mailchute/commits:b")).toBe("2");
  submit("stashes", sh("echo 3 >> README.md; git stash; git gc --quiet; git log --oneline"));
  await pool.result("stashes");
  expect(git("stash", "list")).toContain("WIP on mailchute/stashes");
  expect(git("stash", "show", "-p")).toContain("+3");
  submit("elsewhere", sh("git checkout -qb other; echo 4 > c; git add c; git commit -qm c"));
  const { work_saved: saved } = await pool.result("elsewhere");
  expect(git("branch", "--list", "other")).toBe("");
  expect(git("log", "--format=%s", String(saved))).toContain("c");
  expect(git("fsck", "--full", "--strict")).not.toMatch(/error|missing/);
  expect(git("for-each-ref", "refs/heads/main", "--format=%(subject)")).toBe("first");
});

it("a worker that is killed loses no commit of its run", async ({ skip }) => {
  const place = begin(skip);
  const { pool, submit } = place;
  const git = gitOf(place);
  await pool.start();
  submit(
    "killed",
    `const fs = require('node:fs');
     if (!fs.existsSync('a')) {
       ${sh("echo 1 > a; git add a; git commit -qm mine; echo 2 > b; git add b")};
       console.log('has committed');
       setInterval(() => {}, 1000);
     }`,
  );
  await waitFor(() => saidBy(pool, "killed")?.includes("has committed"), { what: "the commit" });
  expect(git("log", "--format=%s", "mailchute/killed")).toBe("first");
  await pool.killAll();
  await pool.start();
  await pool.result("killed");
  expect(git("log", "--format=%s", "mailchute/killed")).toContain("mine");
  expect(git("show", "mailchute/killed:b")).toBe("2");
});

it("a worker that has lost its lease takes nothing from the run that goes on, and that loses nothing of the first", async ({
  skip,
}) => {
  const place = begin(skip, "lease_ttl_ms: 1000\nheartbeat_ms: 200\n");
  const { pool, submit } = place;
  const git = gitOf(place);
  await pool.start(["--processes", "2"]);
  submit(
    "lost",
    `const fs = require('node:fs');
     const stay = (until) => setInterval(() => fs.existsSync(until) && process.exit(), 50);
     if (!fs.existsSync('a')) {
       ${sh("echo 1 > a; git add a; git commit -qm mine; echo 2 > b; git add b")};
       console.log('first');
       stay('/never');
     } else {
       ${sh("git log --format=%s -1; echo 3 > c; git add c; git commit -qm more; echo second")};
       stay('go');
     }`,
  );
  const says = (text: string): Promise<unknown> =>
    waitFor(() => saidBy(pool, "lost")?.includes(text), { what: `the word ${text}` });
  await says("first");
  const started = pool.events().find(({ event }) => event === "started");
  const worker = pool.workers().find(({ id }) => id === started?.["worker"]);
  if (worker === undefined) throw new Error("no worker has the run");
  process.kill(worker.pid, "SIGSTOP");
  await says("second");
  process.kill(worker.pid, "SIGCONT");
  await waitFor(() => pool.events().some(({ event }) => event === "fenced"), {
    what: "the first worker to see that its lease is lost",
  });
  expect(git("log", "--format=%s", "-1", "mailchute/lost")).toBe("mine");
  fs.writeFileSync(join(pool.state, "worktrees", "lost", "go"), "");
  const { output, attempts } = await pool.result("lost");
  expect({ output, attempts }).toEqual({ output: "mine\nsecond\n", attempts: 2 });
  expect(git("log", "--format=%s", "mailchute/lost").split("\n")).toEqual(
    expect.arrayContaining(["more", "mine", "first"]),
  );
  expect(git("show", "mailchute/lost:b")).toBe("2");
  expect(git("fsck", "--full", "--strict")).not.toMatch(/error|missing/);
});

it("an object under the name of another one does not get into the repository", async ({ skip }) => {
  const place = begin(skip);
  const { pool, submit } = place;
  const git = gitOf(place);
  await pool.start();
  // The bytes of one file, under the name that another one will have.
  submit(
    "poison",
    sh(`bad=$(echo bad | git hash-object -w --stdin); good=$(echo good | git hash-object --stdin)
      dir=$(git rev-parse --git-common-dir)/objects
      at() { echo "$dir/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-)"; }
      mkdir -p "$(dirname "$(at $good)")"; cp "$(at $bad)" "$(at $good)"; echo $good`),
  );
  const { output } = await pool.result("poison");
  const file = join(place.home, "good");
  fs.writeFileSync(file, "good\n");
  // git writes no object that it finds under that name.
  expect(git("hash-object", "-w", file)).toBe(String(output).trim());
  expect(git("cat-file", "-p", String(output).trim())).toBe("good");
});
