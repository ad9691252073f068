/** What a killed git leaves behind does not keep work from landing, and is no conflict. */
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { canCountSteps, countingGit, type GitKill } from "../../support/counting-git.ts";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";

/** A task has ended on its branch, and the target has moved since. */
async function ended(): Promise<Place> {
  const place = newPlace();
  const { pool, repo } = place;
  pool.drop("a", inWorktree("echo a > a.txt; commit"));
  await (await pool.start(["--drain"])).ended;
  repo.git("checkout", "-q", "-b", TARGET);
  repo.commit({ "other.txt": "other\n" }, "other work");
  repo.git("checkout", "-q", "main");
  return place;
}

async function landed({ pool, repo }: Place): Promise<void> {
  expect((await pool.run(["land", "a"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  const { output } = await pool.result("a.land");
  expect(output).toMatchObject({ landing: "landed" });
  expect(repo.git("log", "--format=%s", TARGET)).toBe("work\nother work\nfirst");
  expect(repo.git("worktree", "list").split("\n")).toHaveLength(1);
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/heads/mailchute/a")).toBe("");
}

test.each([
  "refs/mailchute/a/landing.lock",
  `refs/heads/${TARGET}.lock`,
  "refs/heads/mailchute/a.lock",
  "packed-refs.lock",
  "worktrees/a/index.lock",
])("a killed git has left %s: the work lands, and the lock is gone", async (name) => {
  const place = await ended();
  const lock = join(place.repo.dir, ".git", name);
  fs.mkdirSync(dirname(lock), { recursive: true });
  fs.writeFileSync(lock, "");
  const earlier = new Date(Date.now() - 60_000);
  fs.utimesSync(lock, earlier, earlier);
  await landed(place);
  expect(fs.existsSync(lock)).toBe(false);
});

test.skipIf(!canCountSteps())(
  "a git that is killed when it has deleted the branch of landed work leaves no lock",
  async () => {
    const place = await ended();
    const git = countingGit(join(place.pool.dir, "counted"), place.env);
    git.arm([{ at: "update-ref --stdin", moment: "within", victim: "caller", step: 6 }]);
    await landed(place);
    expect(git.calls().filter(({ isKilled }) => isKilled)).toHaveLength(1);
    expect(place.repo.git("gc", "--quiet")).toBe("");
  },
);

test("a rebase that stops without a conflict is begun anew", async () => {
  const place = await ended();
  const once = join(place.pool.dir, "once");
  const broken = join(place.pool.dir, "broken.sh");
  const stops = `echo 'error: a program of git died' >&2; exit 1`;
  fs.writeFileSync(
    broken,
    `case " $* " in *" rebase "*) mkdir '${once}' && { ${stops}; } ;; esac\n`,
  );
  countingGit(join(place.pool.dir, "counted"), place.env, broken);
  await landed(place);
  expect(fs.existsSync(once)).toBe(true);
  const retried = place.pool
    .events()
    .find(({ event, task_id: id }) => event === "retry_scheduled" && id === "a.land");
  expect(JSON.stringify(retried)).toContain("git rebase has stopped: error: a program of git died");
});

test.each<GitKill>([
  { at: "ls-tree", moment: "before", victim: "git" },
  { at: "write-tree", moment: "before", victim: "git" },
])("the worktree of landed work goes also when a git is killed at $at", async (kill) => {
  const place = await ended();
  const git = countingGit(join(place.pool.dir, "counted"), place.env);
  git.arm([kill]);
  await landed(place);
  expect(git.calls().filter(({ isKilled }) => isKilled)).toHaveLength(1);
});
