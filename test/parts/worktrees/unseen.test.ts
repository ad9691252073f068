/** What git does not show: mailchute keeps it all the same. */
import fs from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { dropStaleLocks } from "../../../src/parts/worktrees/make.ts";
import { breakSources, type Change } from "../../support/broken.ts";
import { newRepository, repositoryAt } from "../../support/git-repository.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { IS_WHOLE, WALKS_SEED } from "../../support/walks.ts";
import { inWorktree, newPlace } from "./place.ts";
import {
  type Act,
  LANDS,
  lostCommitsOf,
  randomWalk,
  SUBMODULE,
  type Walk,
  walk,
} from "./unseen-walk.ts";

const SRC = fileURLToPath(new URL("../../../src", import.meta.url));
const WALKS = IS_WHOLE ? 400 : 8;

test("random worktrees: each byte is on the branch, in a save, or still in the worktree", async () => {
  const bad: string[] = [];
  for (let n = 0; n < WALKS; n++) {
    const seed = WALKS_SEED + n;
    const one = randomWalk(seededRandom(seed));
    const lost = await walk(tempDir(), one, SRC).catch((error: unknown) => [String(error)]);
    if (lost.length > 0) bad.push(`seed ${seed}: ${lost.join(", ")}: ${JSON.stringify(one)}`);
  }
  expect(bad).toEqual([]);
});

test("commits that a run has made are kept when it removes its worktree and its branch", async () => {
  const acts = "echo one > own.txt; commit; git checkout -q HEAD~1; echo two > two.txt; commit";
  for (const setting of ["core.logAllRefUpdates=true", "core.logAllRefUpdates=false"]) {
    expect(await lostCommitsOf(tempDir(), acts, setting, SRC)).toEqual([]);
    const change = { file: "git/head-log.ts", from: "fs.linkSync(log, kept);", to: "" };
    const broken = join(breakSources(change), "src");
    expect(await lostCommitsOf(tempDir(), acts, setting, broken)).toHaveLength(2);
  }
});

test("a run that removes its worktree says what became of its work, also in its record", async () => {
  const place = newPlace();
  const removes = "git worktree remove --force $PWD; git -C ../../../repo branch -D mailchute/";
  const scripts = {
    a: `echo x > x; commit; ${removes}a`,
    b: `${removes}b`,
    c: "rm -rf $PWD",
    d: "echo x > x; echo x > x.log; git init -q inner; exit 64",
  };
  for (const [id, script] of Object.entries(scripts))
    place.pool.drop(id, inWorktree(script, { land: "merge" }));
  await (await place.pool.start(["--drain"])).ended;
  expect(await place.pool.result("a")).toMatchObject({
    landing: "pending",
    work_saved: "refs/mailchute/a/1",
  });
  expect(await place.pool.error("d")).toMatchObject({
    work_saved: "refs/mailchute/d/1",
    work_left: ["inner is a repository of its own", "x.log"],
  });
  expect((await place.pool.error("a.land"))["error"]).toContain("mailchute rescue a");
  expect(place.repo.git("show", "refs/mailchute/a/1:x")).toBe("x");
  for (const id of ["b", "c"])
    expect(await place.pool.result(id), id).toMatchObject({ landing: "nothing" });
  const alerts = place.pool
    .alerts()
    .flatMap((one) => (one["alert"] === "worktree" ? [String(one["message"])] : []));
  expect(alerts.sort((a, b) => (a < b ? -1 : 1))).toEqual([
    "the run of task a has removed its worktree, and the branch mailchute/a; its commits are saved in refs/mailchute/a/1 (mailchute rescue a)",
    "the run of task b has removed its worktree, and the branch mailchute/b",
  ]);
});

test("work in a worktree whose git directory a run has changed is saved or named, and hides no other", async () => {
  const { pool, repo } = newPlace();
  const moved = "git worktree move $PWD $(cd ../../..; pwd)/moved; echo x > x.txt";
  const scripts = {
    head: "echo garbage > $(git rev-parse --git-dir)/HEAD; echo x > x.txt",
    object: `git update-index --add --cacheinfo 100644,${"1".repeat(40)},gone.txt; echo x > x.txt`,
    moved,
  };
  for (const [id, script] of Object.entries(scripts))
    pool.drop(id, inWorktree(script, { land: "merge", target: `to-${id}` }));
  await (await pool.start(["--drain"])).ended;
  for (const id of ["head", "object"]) {
    await pool.result(`${id}.land`);
    expect(repo.git("show", `to-${id}:x.txt`), id).toBe("x");
  }
  expect(await pool.result("moved")).toMatchObject({
    landing: "pending",
    work_left: [expect.stringMatching(/moved was moved to \S+\/moved$/)],
  });
  const elsewhere = "echo x >> $(git rev-parse --git-common-dir)/objects/info/alternates";
  pool.drop("other", inWorktree("echo y > y.txt; exit 64"));
  pool.drop("alternates", inWorktree(`${elsewhere}; echo x > x.txt`, { land: "merge" }));
  await (await pool.start(["--drain"])).ended;
  await pool.result("alternates");
  const settings = repo.git("cat-file", "-p", "refs/mailchute/alternates/settings-changed");
  expect(settings).toBe("objects/info/alternates");
  // Seen without a run in between that would mend it.
  fs.writeFileSync(join(repo.dir, ".git/worktrees/alternates/HEAD"), "garbage\n");
  const { stdout, stderr } = await pool.run(["worktrees", "ls"]);
  expect(stderr).toContain("alternates in");
  expect(stdout).toContain("other");
});

test("no commit of other contents, and no invented parent, hides what only a branch has", async () => {
  const { pool, repo } = newPlace();
  const add = "echo $ID > $ID.txt; commit";
  const graft =
    "echo $(git rev-parse main) $(git rev-parse HEAD) >> $(git rev-parse --git-common-dir)/info/grafts";
  const replace = "git replace --graft main HEAD";
  for (const [id, trick] of Object.entries({ graft, replace }))
    pool.drop(id, inWorktree(`ID=${id}; ${add}; ${trick}`));
  await (await pool.start(["--drain"])).ended;
  for (const id of ["graft", "replace"]) {
    await pool.result(id);
    expect(repo.git("show", `mailchute/${id}:${id}.txt`)).toBe(id);
  }
});

/** A link to a commit that no repository has. */
const INVENTED = `git update-index --cacheinfo 160000,${"1".repeat(40)},sub; commit() { git -c user.name=x -c user.email=x@x commit -qm work; }; commit`;

test("work in a submodule is told, and no commit lands that only its worktree has", async () => {
  const place = newPlace();
  const inner = newRepository(join(place.pool.dir, "inner"));
  const allow = ["-c", "protocol.file.allow=always"];
  place.repo.git(...allow, "submodule", "--quiet", "add", inner.dir, "sub");
  place.repo.commit({}, "with a submodule");
  const more = { setup: ["sh", "-c", SUBMODULE], land: "merge" };
  place.pool.drop("changed", inWorktree("echo x > sub/README.md", more));
  place.pool.drop("named", inWorktree("cd sub; echo x > x; commit; cd ..; commit", more));
  place.pool.drop("looked", inWorktree("git -C sub status; echo x > x", more));
  const gone =
    "cd sub; echo y > y; commit; cd ..; commit; git worktree remove --force --force $PWD";
  place.pool.drop("gone", inWorktree(gone, more));
  place.pool.drop("invented", inWorktree(INVENTED, { land: "merge" }));
  await (await place.pool.start(["--drain"])).ended;
  for (const id of ["changed", "named"]) {
    expect(await place.pool.result(id), id).toMatchObject({
      landing: "pending",
      work_left: ["sub is a repository of its own"],
    });
    expect((await place.pool.error(`${id}.land`))["error"]).toContain("sub is a repository");
  }
  for (const id of ["gone", "invented"])
    expect((await place.pool.error(`${id}.land`))["error"]).toMatch(
      /names the commit \w{12} of the submodule sub, which is in no repository here/,
    );
  await place.pool.result("looked.land");
  const link = (ref: string): string => place.repo.git("rev-parse", `${ref}:sub`);
  expect(link("mailchute/integration")).toBe(link("main"));
  expect(place.pool.alerts().filter((one) => one["alert"] === "worktree")).toHaveLength(3);
  // What the person has fetched since, or the remote has, lands.
  const sub = repositoryAt(join(place.repo.dir, "sub"));
  const found = sub.commit({ y: "y" }, "of a person");
  const here = INVENTED.replace(/[0-9a-f]{40}/, found);
  place.pool.drop("found", inWorktree(here, { land: "merge" }));
  const fetched = `git -C sub fetch -q; git -C sub checkout -q origin/main; git add sub; commit`;
  inner.commit({ z: "z" }, "of others");
  place.pool.drop(
    "fetched",
    inWorktree(fetched, { ...more, dependencies: ["found.land"], target: "other" }),
  );
  await (await place.pool.start(["--drain"])).ended;
  for (const id of ["found", "fetched"])
    expect(await place.pool.result(`${id}.land`), id).toMatchObject({
      output: { landing: "landed" },
    });
});

test("a folder that a run has made in the place of a lock goes as a lock would", () => {
  const [commonDir, gitDir] = [tempDir(), tempDir()];
  const locks = [
    join(commonDir, "refs/mailchute/a/1.lock"),
    join(commonDir, "refs/heads/mailchute/a.lock"),
    join(gitDir, "index.lock"),
  ];
  for (const lock of locks) fs.mkdirSync(join(lock, "inside"), { recursive: true });
  dropStaleLocks({ commonDir, prefix: "", env: {} }, "a", gitDir);
  expect(locks.filter((lock) => fs.existsSync(lock))).toEqual([]);
  // With reftable.
  const tables = tempDir();
  fs.mkdirSync(join(tables, "refs"));
  fs.writeFileSync(join(tables, "refs/heads"), "this repository uses the reftable format\n");
  dropStaleLocks({ commonDir: tables, prefix: "", env: {} }, "a");
});

const PLAIN: Walk = { settings: [], isSparse: false, setup: [], acts: [], isCompleted: true };
const edit = (script: string): Act[] => [{ script }];
const [OUTSIDE, ASSUMED] = LANDS as [Act, Act];

/** Each one is right with our sources, and wrong with the broken ones. */
const SORTED = "const { changed, fresh } = sort(seen);";
const FRESH = "const { ignored, others } = await splitIgnored(call, fresh);";
const BROKEN: readonly [what: string, one: Partial<Walk>, ...changes: Change[]][] = [
  [
    "a file marked skip-worktree",
    { acts: edit("git update-index --skip-worktree a.txt; echo x > a.txt"), isCompleted: false },
    trustsMarks(),
  ],
  [
    "a tracked file outside of the cone",
    { isSparse: true, acts: edit("mkdir docs; echo x > docs/d.md"), isCompleted: false },
    { file: "git/files-look.ts", from: SORTED, to: `${SORTED} changed.length = 0;` },
  ],
  [
    "a new file outside of the cone",
    { isSparse: true, acts: [OUTSIDE] },
    {
      file: "git/files-look.ts",
      from: FRESH,
      to: `${FRESH} others.splice(0, others.length, ...others.filter((one) => !/^docs/.test(one)));`,
    },
  ],
  ["a file marked assume-unchanged", { acts: [ASSUMED] }, trustsMarks()],
  [
    "a mode that two looks find, because the worktree is on no branch",
    { acts: edit("git checkout -q --detach; chmod +x a.txt; chmod -x run.sh") },
    {
      file: "git/files-look.ts",
      from: "!before.blobs.includes(entry.oid) || mode !== entry.mode",
      to: "!before.blobs.includes(entry.oid)",
    },
  ],
  [
    "a submodule with a change",
    { setup: [SUBMODULE], acts: edit("echo x > sub/README.md") },
    {
      file: "git/inner-files.ts",
      from: "if (changed.size === 0) return result;",
      to: "return result;",
    },
  ],
  [
    "a file that git refuses",
    {
      settings: ["core.autocrlf=input", "core.safecrlf=true"],
      acts: [{ script: "printf 'x\\r\\n' > y.txt; echo fine > ok.txt", lands: ["ok.txt", "fine"] }],
    },
    { file: "git/own-index.ts", from: "if (!isRefusal(error)) throw error;", to: "throw error;" },
  ],
  [
    "work beside a name that git takes into no commit",
    {
      acts: [
        {
          script: "echo x > '.git '; echo x > GIT~1; echo fine > ok.txt",
          lands: ["ok.txt", "fine"],
        },
      ],
    },
    { file: "git/own-index.ts", from: "this.change(this.taking", to: "this.change(this.call" },
  ],
  [
    "work beside an index that a run has broken",
    {
      acts: [
        {
          script: "echo broken > $(git rev-parse --git-dir)/index; echo whole > whole.txt",
          lands: ["whole.txt", "whole"],
        },
      ],
    },
    {
      file: "git/status.ts",
      from: "if (!/\\bindex\\b/.test(messageOf(error))) throw error;",
      to: "throw error;",
    },
  ],
  [
    "work beside a folder in the place of a file of git",
    {
      acts: [
        {
          script:
            "cd $(git rev-parse --git-dir); mkdir -p index.broken/x; echo broken > index; cd - > /dev/null; echo whole > whole.txt",
          lands: ["whole.txt", "whole"],
        },
      ],
    },
    { file: "git/status.ts", from: ".broken`, { force: true, recursive: true })", to: ".broken`)" },
  ],
  [
    "a repository that a run has made in the place of ours",
    { acts: edit("rm .git; git init -q; echo x > x") },
    { file: "git/walk-files.ts", from: '=== ".git" && !entry.isDirectory())', to: '=== ".git")' },
  ],
  [
    "line ends that git would give back in another way",
    { settings: ["core.autocrlf=input"], acts: edit("printf 'a\\r\\nb\\n' > mixed.txt") },
    {
      file: "git/files-look.ts",
      from: "converted.filter((path) => !back.has(path))",
      to: "[]",
    },
  ],
];

function trustsMarks(): Change {
  return {
    file: "git/files-look.ts",
    from: SORTED,
    to: `const { changed: all, fresh } = sort(seen);
      const listed = splitNul((await askGit(call, "ls-files", "-v", "-z")).out.toString("latin1"));
      const marked = new Set(listed.filter((one) => /^[a-zS]/.test(one)).map((one) => one.slice(2)));
      const changed = all.filter((path) => !marked.has(path));`,
  };
}

test.each(BROKEN)("%s is kept; a variant that loses it is noticed", async (_, one, ...changes) => {
  expect(await walk(tempDir(), { ...PLAIN, ...one }, SRC)).toEqual([]);
  const broken = join(breakSources(...changes), "src");
  const lost = await walk(tempDir(), { ...PLAIN, ...one }, broken).catch(String);
  expect(lost).not.toEqual([]);
});
