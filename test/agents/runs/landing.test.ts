/** Work of claude and codex that cannot land, or that a person rejects, goes back into the same session; the stand-ins play both. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newRepository, type TestRepository } from "../../support/git-repository.ts";
import { takeSome } from "../../support/take-some.ts";
import { type Bench, type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const TARGET = "mailchute/integration";
const DONE = { say: "Done." };
const WRITE = { run: "echo agent > same.txt; pwd >> ../where" };
const NOTHING = { run: "pwd >> ../where" };
/** Both changes hold. */
const SOLVE = `git merge -q ${TARGET} || { printf 'person\\nagent\\n' > same.txt; git commit -qam both; }`;
const MEND = { run: `pwd >> ../where; ${SOLVE}` };
const OBEY = { run: "pwd >> ../where; echo more >> same.txt" };
/** Brought together with the target the work is red, by itself it is green. */
const CHECK = ["sh", "-c", "test ! -e no.txt || { echo not with no.txt; exit 3; }"];
const DROP = { run: `pwd >> ../where; git merge -q ${TARGET} && git rm -q no.txt` };

interface Place extends Bench {
  repo: TestRepository;
  /** Ends when nothing moves any more. */
  drain: () => Promise<void>;
  /** The folders in which the agent worked, in order. */
  where: () => string[];
}

/** @param theirs a file that a person has put on the target in the meantime */
function placeOf(
  kind: Kind,
  theirs: Record<string, string>,
  turns: readonly (readonly Step[])[],
  land = "merge",
): Place {
  const bench = newBench([
    { name: "coder", kind, turns, settings: { worktree: "auto", land, base: "checkout" } },
  ]);
  const { pool } = bench;
  const repo = newRepository(join(pool.dir, "repo"));
  repo.git("config", "user.name", "Ada");
  repo.git("config", "user.email", "ada@example.invalid");
  repo.git("checkout", "-q", "-b", TARGET);
  repo.commit(theirs, "of a person");
  repo.git("checkout", "-q", "main");
  const drain = async (): Promise<void> => {
    await (await pool.start(["--drain"])).ended;
  };
  const where = (): string[] =>
    fs
      .readFileSync(join(pool.state, "worktrees", "where"), "utf8")
      .trim()
      .split("\n");
  return { ...bench, repo, drain, where };
}

const drop = ({ pool }: Bench, more: object = {}): void =>
  pool.drop("task", { agent: "coder", prompt: "Write the file", cwd: "repo", ...more });

/** It ran twice, the second time in the session and in the worktree of the first. @returns what it was told then */
function toldAgain(place: Place): string {
  const [first, second, ...more] = place.resumed("coder");
  expect([first, more]).toEqual([undefined, []]);
  expect(second).toEqual(expect.any(String));
  const worktree = join(fs.realpathSync(place.pool.state), "worktrees", "task");
  expect(place.where()).toEqual([worktree, worktree]);
  const [before = "", told = "", ...others] = place.messages("coder");
  expect(before).toContain("Write the file");
  expect(others).toEqual([]);
  return told;
}

describe.each(KINDS)("%s", (kind) => {
  it("gets a conflict back once, with its files and its text, and what it has mended lands", async () => {
    const place = placeOf(kind, { "same.txt": "person\n" }, [
      [WRITE, DONE],
      [MEND, DONE],
    ]);
    const { pool, repo } = place;
    drop(place);
    await place.drain();
    expect(pool.errors()).toEqual([]);
    const told = toldAgain(place);
    expect(told).toContain("conflict in same.txt");
    expect(told).toMatch(/<<<<<<<[\s\S]*person[\s\S]*=======[\s\S]*agent[\s\S]*>>>>>>>/);
    expect((await pool.result("task.land")).output).toMatchObject({ landing: "landed" });
    expect(repo.git("show", `${TARGET}:same.txt`)).toBe("person\nagent");
    // A branch with a merge in it is merged, so that what the merge has solved stays solved.
    expect(repo.git("merge-base", "--is-ancestor", `${TARGET}@{1}`, TARGET)).toBe("");
  });

  it("gets a red check back once, with the end of its output, and what it has mended lands", async () => {
    const place = placeOf(kind, { "no.txt": "person\n" }, [
      [WRITE, DONE],
      [DROP, DONE],
    ]);
    const { pool, repo } = place;
    drop(place, { verify: CHECK });
    await place.drain();
    expect(pool.errors()).toEqual([]);
    const told = toldAgain(place);
    expect(told).toContain("its check failed there");
    expect(told).toContain("not with no.txt");
    expect(repo.git("ls-tree", "--name-only", TARGET).split("\n")).toEqual([
      ".gitignore",
      "README.md",
      "same.txt",
    ]);
  });

  it.each([
    ["a conflict", { "same.txt": "person\n" }, {}, "conflict in same.txt"],
    ["a red check", { "no.txt": "person\n" }, { verify: CHECK }, "not with no.txt"],
  ] as const)(
    "that does not mend %s is not asked again: a person is, and branch and worktree stay",
    async (_what, theirs, more, why) => {
      const place = placeOf(kind, theirs, [
        [WRITE, DONE],
        [NOTHING, DONE],
        [NOTHING, DONE],
      ]);
      const { pool, repo } = place;
      const before = repo.git("rev-parse", TARGET);
      drop(place, more);
      await place.drain();
      toldAgain(place);
      const { kind: of, error } = await pool.error("task.land");
      expect(of).toBe("landing");
      expect(error).toContain(why);
      expect(repo.git("rev-parse", TARGET)).toBe(before);
      expect(repo.git("show", "mailchute/task:same.txt")).toBe("agent");
      expect(fs.readdirSync(join(pool.state, "worktrees"))).toContain("task");
      // A person, who has looked at it, may let the agent try once more.
      expect((await pool.run(["reject", "task", "look at the target"])).code).toBe(0);
      await place.drain();
      expect(place.messages("coder").at(-1)).toContain("look at the target");
      expect(new Set(place.resumed("coder").slice(1)).size).toBe(1);
    },
  );

  it("gets what a person rejects back with that text, and land takes what it makes of it", async () => {
    const place = placeOf(
      kind,
      { "other.txt": "person\n" },
      [
        [WRITE, DONE],
        [OBEY, DONE],
      ],
      "branch",
    );
    const { pool, repo } = place;
    drop(place);
    await place.drain();
    expect((await pool.result("task")).landing).toBe("branch");
    const rejected = await pool.run(["reject", "task", "say more,", "please"]);
    expect(rejected).toMatchObject({ code: 0, stdout: "task.fix-1\n" });
    await place.drain();
    expect(toldAgain(place)).toContain("say more, please");
    expect((await pool.run(["land", "task"])).code).toBe(0);
    await place.drain();
    expect(pool.errors()).toEqual([]);
    expect(repo.git("show", `${TARGET}:same.txt`)).toBe("agent\nmore");
    expect(repo.git("show", `${TARGET}:other.txt`)).toBe("person");
  });
});
