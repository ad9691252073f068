/** The stand-ins for claude and codex in worktrees: work, checks, sessions, kills, and what `continue` finds there. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newRepository, type TestRepository } from "../../support/git-repository.ts";
import { takeSome } from "../../support/take-some.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type Bench, type Kind, newBench, type Step } from "./bench.ts";

takeSome();

const KINDS: readonly Kind[] = ["claude", "codex", "acp"];
const HALF = { run: "echo half > half.txt; pwd > ../where" };
const SLOW = { run: "sleep 60" };
const REST = { run: "test -e half.txt && echo rest > rest.txt" };
const DONE = { say: "Done." };

interface Place extends Bench {
  repo: TestRepository;
  worktree: string;
}

function placeOf(kind: Kind, turns: readonly (readonly Step[])[]): Place {
  const bench = newBench([{ name: "coder", kind, turns, settings: { worktree: "auto" } }]);
  const repo = newRepository(join(bench.pool.dir, "repo"));
  const worktree = join(fs.realpathSync(bench.pool.state), "worktrees", "task");
  return { ...bench, repo, worktree };
}

const drop = ({ pool }: Bench, more: object = {}): void =>
  pool.drop("task", { agent: "coder", prompt: "Write the two files", cwd: "repo", ...more });

function filesOf({ repo }: Place, ref: string): string[] {
  return repo.git("ls-tree", "-r", "--name-only", ref).split("\n");
}

async function hasHalf(place: Place): Promise<void> {
  const isSlow = (): boolean =>
    place.log("coder").filter(({ event_type: type }) => type === "tool_started").length === 2;
  await waitFor(() => fs.existsSync(join(place.worktree, "half.txt")) && isSlow(), {
    what: "its half",
  });
}

describe.each(KINDS)("%s", (kind) => {
  it("works and is verified in its worktree, and its work is one commit on its branch", async () => {
    const place = placeOf(kind, [[HALF, REST, DONE]]);
    const { pool, repo } = place;
    drop(place, { verify: ["test", "-e", "rest.txt"], expect_files: ["half.txt"] });
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 1 });
    expect(filesOf(place, "mailchute/task")).toEqual([
      ".gitignore",
      "README.md",
      "half.txt",
      "rest.txt",
    ]);
    expect(repo.git("log", "--format=%s", "mailchute/task")).toBe("Write the two files\nfirst");
    expect(repo.git("status", "--porcelain")).toBe("");
  });

  it("resumes its session in the same worktree for a retry, and what the first run left is saved", async () => {
    const place = placeOf(kind, [
      [HALF, { exit: 1 }],
      [REST, DONE],
    ]);
    const { pool, repo, worktree } = place;
    drop(place);
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ attempts: 2 });
    expect(place.resumed("coder")).toEqual([undefined, expect.any(String)]);
    expect(place.sessionPath("task")).toBeUndefined();
    expect(repo.git("show", "refs/mailchute/task/1:half.txt")).toBe("half");
    expect(filesOf(place, "mailchute/task")).toContain("rest.txt");
    expect(fs.readFileSync(join(worktree, "..", "where"), "utf8")).toBe(`${worktree}\n`);
  });

  it("resumes there after its worker and the supervisor were killed, and what it had is saved", async () => {
    const place = placeOf(kind, [
      [HALF, SLOW],
      [REST, DONE],
    ]);
    const { pool, repo } = place;
    drop(place);
    await pool.start();
    await hasHalf(place);
    await pool.killAll();
    await pool.start();
    expect(await pool.result("task")).toMatchObject({ output: "Done.", attempts: 2 });
    expect(place.resumed("coder")).toEqual([undefined, expect.any(String)]);
    expect(repo.git("show", "refs/mailchute/task/1:half.txt")).toBe("half");
    expect(filesOf(place, "mailchute/task")).toContain("rest.txt");
  });

  it("continue goes on in that worktree, on that branch, also after the worktree was removed", async () => {
    const more = { run: "cat half.txt >> more.txt" };
    const place = placeOf(kind, [
      [HALF, { exit: 1 }],
      [more, DONE],
      [more, DONE],
    ]);
    const { pool, repo, worktree } = place;
    drop(place, { max_attempts: 1 });
    await pool.start();
    await pool.error("task");
    expect((await pool.run(["worktrees", "clean", "task"])).code).toBe(0);
    expect(fs.existsSync(worktree)).toBe(false);
    const goOn = async (id: string, after: string): Promise<void> => {
      const { code, stderr } = await pool.run(["continue", after, "Go on", "--id", id]);
      expect(code, stderr).toBe(0);
      expect(await pool.result(id)).toMatchObject({ output: "Done." });
    };
    await goOn("second", "task");
    // What the first task had left uncommitted was saved, and is there again.
    expect(filesOf(place, "mailchute/task")).toEqual(
      expect.arrayContaining(["half.txt", "more.txt"]),
    );
    repo.git("merge", "--quiet", "--ff-only", "mailchute/task");
    await pool.run(["worktrees", "clean"]);
    expect(repo.git("branch", "--list", "mailchute/*")).toBe("");
    await goOn("third", "second");
    expect(repo.git("show", "mailchute/task:more.txt")).toBe("half\nhalf");
    expect(repo.git("branch", "--list", "mailchute/*")).toContain("mailchute/task");
    expect(repo.git("log", "--format=%s", "mailchute/task")).toBe("Go on\nGo on\nfirst");
    const [, first, ...others] = place.resumed("coder");
    expect(first).toEqual(expect.any(String));
    expect(others).toEqual([first]);
  });
});
