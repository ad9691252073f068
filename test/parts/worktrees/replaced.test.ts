/** A run puts something else in the place of its worktree: nothing there is taken, changed or removed, and people are told. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { breakBuild } from "../../support/broken.ts";
import { inWorktree, newPlace, type Place } from "./place.ts";

/** What a run does, by the id of its task; `$W` is its worktree, `$TOP` the folder of the pool. */
const REPLACED: Readonly<Record<string, string>> = {
  outside: "rm -rf $W; ln -s $TOP/outside $W",
  person: "rm -rf $W; ln -s $TOP/repo $W",
  sibling: "rm -rf $W; ln -s $TOP/state/worktrees/other $W",
  nowhere: "rm -rf $W; ln -s $TOP/nowhere $W",
  moved: "echo mine > $W/mine.txt; mv $W $TOP/moved; ln -s $TOP/moved $W",
  file: "rm -rf $W; echo mine > $W",
  forgotten:
    "git -C $TOP/repo worktree remove --force $W; git -C $TOP/repo branch -q -D mailchute/forgotten; ln -s $TOP/outside $W",
};
const IDS = Object.keys(REPLACED);
/** So each of them is told. */
const TOLD = /\/worktrees\/\w+ is (?:a link to \S+|no directory)/;

/** Every file of others, with its contents. */
function bytesIn({ pool }: Place): string {
  const script =
    "find outside repo state/worktrees/other -name .git -prune -o -type f -exec sha256sum {} +; cat state/worktrees/other/.git";
  return execFileSync("sh", ["-c", script], { cwd: pool.dir, encoding: "utf8" });
}

async function placeWithOthers(launcher?: string): Promise<Place> {
  const place = newPlace("", launcher === undefined ? {} : { launcher });
  const { pool, repo } = place;
  fs.mkdirSync(join(pool.dir, "outside"));
  fs.writeFileSync(join(pool.dir, "outside", "secret.txt"), "secret\n");
  fs.writeFileSync(join(repo.dir, "of-a-person.txt"), "not committed\n");
  pool.drop("other", inWorktree("echo other > other.txt; exit 64"));
  await (await pool.start(["--drain"])).ended;
  return place;
}

function drop({ pool }: Place, id: string, end: string): void {
  const script = `W=$PWD; TOP=$(cd ../../..; pwd); cd ..; ${REPLACED[id]}; ${end}`;
  pool.drop(id, inWorktree(script, { land: "merge", max_attempts: 2 }));
}

test("something else in the place of a worktree: nothing there is taken or changed, and it is told", async () => {
  const place = await placeWithOthers();
  const { pool, repo, worktree } = place;
  const before = bytesIn(place);
  const refs = repo.git("for-each-ref");
  for (const id of IDS) drop(place, id, "true");
  await (await pool.start(["--drain"])).ended;
  for (const id of IDS) {
    const work_left = [expect.stringMatching(TOLD)];
    expect(await pool.result(id), id).toMatchObject({ landing: "pending", work_left });
    const isGone = id === "forgotten";
    const { error } = await pool.error(`${id}.land`);
    expect(error, id).toMatch(isGone ? /the branch mailchute\/forgotten .+ is gone/ : TOLD);
    const told = pool.alerts().filter((one) => String(one["message"]).includes(`task ${id} `));
    expect(told, id).toHaveLength(1);
  }
  for (const args of [["ls"], ["clean"], ["clean", ...IDS, "--ignored"]])
    await pool.run(["worktrees", ...args]);
  for (const id of IDS) await pool.run(["review", id]);
  expect(IDS.filter((id) => fs.lstatSync(worktree(id)).isDirectory())).toEqual([]);
  expect(bytesIn(place)).toBe(before);
  const fresh = repo.git("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)");
  for (const line of fresh.split("\n").filter((one) => !refs.includes(one.split(" ")[2] ?? "")))
    expect(repo.git("ls-tree", "-r", "--name-only", line.slice(0, 40))).toBe(
      ".gitignore\nREADME.md",
    );
  // When a person has removed it, the rest goes as always.
  for (const id of IDS) fs.unlinkSync(worktree(id));
  await pool.run(["worktrees", "clean", ...IDS.filter((id) => id !== "forgotten")]);
  expect((await pool.run(["worktrees", "ls"])).stdout).not.toMatch(TOLD);
  expect(fs.readdirSync(join(repo.dir, ".git/worktrees"))).toEqual(["other"]);
});

test("a run that finds something else in the place of its worktree does not begin", async () => {
  const place = await placeWithOthers();
  const before = bytesIn(place);
  for (const id of IDS) drop(place, id, "exit 1");
  await (await place.pool.start(["--drain"])).ended;
  for (const id of IDS)
    expect(await place.pool.error(id), id).toMatchObject({
      attempts: 2,
      error: expect.stringMatching(/, where the worktree belongs; bring the worktree back/),
    });
  expect(bytesIn(place)).toBe(before);
});

test("a build that follows the link takes what it leads to, and that is noticed", async () => {
  const change = { from: "if (stats.isDirectory())", to: "if (true)" };
  const files = ["dist/worker/worktree.cjs", "dist/chunks/worktree.cjs"];
  const launcher = breakBuild(onTestFinished, ...files.map((file) => ({ file, ...change })));
  const place = await placeWithOthers(launcher);
  drop(place, "outside", "true");
  await (await place.pool.start(["--drain"])).ended;
  await place.pool.result("outside.land");
  const landed = place.repo.git("ls-tree", "-r", "--name-only", "mailchute/integration");
  expect(landed).toBe("secret.txt");
});
