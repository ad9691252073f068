/** A task that depends on another one begins with what has landed, and with what a person has committed. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";

/** Runs a task that writes down what it finds, and lands. */
async function ran(place: Place, id: string, more: object = {}): Promise<string[]> {
  const { pool } = place;
  const script = `ls > ../../../${id}.found; echo ${id} > ${id}.txt; commit`;
  const metadata = { dependencies: id === "a" ? [] : ["a"] };
  pool.drop(id, inWorktree(script, { land: "merge", metadata, ...more }));
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  return fs
    .readFileSync(join(pool.dir, `${id}.found`), "utf8")
    .trim()
    .split("\n");
}

test("a task sees the work of the one that it depends on", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  pool.drop("a", inWorktree("echo a > a.txt; commit", { land: "merge" }));
  const found = await ran(place, "b");
  expect(found).toEqual(["README.md", "a.txt"]);
  const { base } = await pool.result("b");
  expect(base).toBe(repo.git("rev-parse", `${TARGET}^`));
  expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nwork\nfirst");
  expect(repo.git("log", "--format=%s", "main")).toBe("first");
});

test("a node of the plan sees the work of the node before it", async () => {
  const agent = {
    name: "coder",
    kind: "exec",
    program: "sh",
    args: [
      "-ec",
      'ls > "../$MAILCHUTE_TASK_ID.found"; echo x > "$MAILCHUTE_TASK_ID.txt"; echo \'<result>{"status": "success"}</result>\'',
    ],
    phases: ["IMPLEMENT"],
    worktree: "auto",
    land: "merge",
  };
  const { pool, repo } = newPlace(`agents: [${JSON.stringify(agent)}]\n`);
  const node = { agent: "coder", cwd: repo.dir };
  const nodes = [
    { id: "one", ...node },
    { id: "two", ...node, dependencies: ["one"] },
  ];
  fs.writeFileSync(join(pool.state, "roadmap.yaml"), `${JSON.stringify({ nodes })}\n`);
  await (await pool.start(["--drain"])).ended;
  expect(pool.errors()).toEqual([]);
  const found = join(pool.state, "worktrees", "two.found");
  expect(fs.readFileSync(found, "utf8")).toBe("README.md\none.txt\n");
  expect(repo.git("ls-tree", "--name-only", TARGET)).toContain("one.txt\ntwo.txt");
});

test("what a person has committed since is there, too, and comes into the target with the work", async () => {
  const place = newPlace();
  const { repo } = place;
  await ran(place, "a");
  const own = repo.commit({ "person.txt": "person\n" }, "of a person");
  expect(await ran(place, "b")).toEqual(["README.md", "a.txt", "person.txt"]);
  expect(repo.git("merge-base", own, TARGET)).toBe(own);
  expect(repo.git("ls-tree", "--name-only", TARGET)).toBe(
    ".gitignore\nREADME.md\na.txt\nb.txt\nperson.txt",
  );
  expect(repo.git("rev-parse", "main")).toBe(own);
  expect(repo.git("status", "--porcelain")).toBe("");
  // The branch of a person has all of it now: work begins there.
  repo.git("merge", "-q", TARGET);
  repo.commit({ "later.txt": "later\n" }, "later");
  const main = repo.git("rev-parse", "main");
  await ran(place, "c");
  expect((await place.pool.result("c")).base).toBe(main);
});

test("work that begins at a merge of both and changes nothing leaves no branch, unless a person's branch has gone", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  await ran(place, "a");
  repo.commit({ "person.txt": "person\n" }, "of a person");
  const idle = inWorktree("true", { land: "merge", metadata: { dependencies: ["a"] } });
  pool.drop("idle", idle);
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("idle")).toMatchObject({ landing: "nothing" });
  expect(repo.git("for-each-ref", "*/mailchute/idle*", "*/mailchute/idle/*")).toBe("");
  // The other one is the only name of a commit that is on no branch any more.
  repo.git("switch", "-q", "--detach");
  const own = repo.commit({ "loose.txt": "loose\n" }, "on no branch");
  pool.drop("holds", idle);
  await (await pool.start(["--drain"])).ended;
  expect(await pool.result("holds")).toMatchObject({ landing: "nothing" });
  expect(repo.git("merge-base", own, "mailchute/holds")).toBe(own);
});

test("what a person has committed is in conflict with what has landed: it begins at the target", async () => {
  const place = newPlace();
  const { pool, repo } = place;
  await ran(place, "a");
  const landed = repo.git("rev-parse", TARGET);
  repo.commit({ "a.txt": "of a person\n" }, "of a person");
  expect(await ran(place, "b")).toEqual(["README.md", "a.txt"]);
  expect((await pool.result("b")).base).toBe(landed);
  expect(repo.git("show", `${TARGET}:a.txt`)).toBe("a");
});

test("a task that builds on nothing begins with what has landed, too", async () => {
  const place = newPlace();
  await ran(place, "a");
  expect(await ran(place, "b", { metadata: {} })).toEqual(["README.md", "a.txt"]);
});

test.each([
  ["stays on its branch", { land: "branch" }],
  ["says base: checkout", { base: "checkout" }],
])("work that %s begins where the person is", async (_what, more) => {
  const place = newPlace();
  const { pool, repo } = place;
  await ran(place, "a");
  expect(await ran(place, "b", more)).toEqual(["README.md"]);
  expect((await pool.result("b")).base).toBe(repo.git("rev-parse", "main"));
});
