/** Whether work has landed is asked of git each time: a person may have deleted its target, or set it back. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { takeSome } from "../../support/take-some.ts";
import { inWorktree, newPlace, type Place } from "../worktrees/place.ts";

takeSome();

const TARGET = "mailchute/integration";

/** Two tasks whose work has landed, one after the other. */
async function landTwo(): Promise<Place> {
  const place = newPlace();
  for (const id of ["a", "b"]) {
    place.pool.drop(id, inWorktree(`echo ${id} > ${id}.txt`, { land: "merge" }));
    await (await place.pool.start(["--drain"])).ended;
  }
  return place;
}

async function statesOf({ ask }: Place): Promise<Record<string, string>> {
  const { json } = await ask("status");
  const { landed, unlanded } = (
    json as { work: { landed: number; unlanded: { task_id: string; why: string }[] } }
  ).work;
  return Object.fromEntries([
    ["landed", String(landed)],
    ...unlanded.map(({ task_id: id, why }): [string, string] => [id, why]),
  ]);
}

test("work of a deleted target no longer counts as landed, an alert says so, and land --again brings it back", async () => {
  const place = await landTwo();
  const { pool, repo, ask } = place;
  const [a, b] = [repo.git("rev-parse", `${TARGET}^`), repo.git("rev-parse", TARGET)];
  expect(await statesOf(place)).toEqual({ landed: "2" });
  repo.git("branch", "-D", TARGET);
  expect(await statesOf(place)).toEqual({
    landed: "0",
    a: `it landed on ${TARGET} as ${a.slice(0, 12)}, which is on no branch any more: mailchute land a --again`,
    b: `it landed on ${TARGET} as ${b.slice(0, 12)}, which is on no branch any more: mailchute land b --again`,
  });
  const { json: report } = await ask("report");
  expect((report as { work: { state: string }[] }).work.map(({ state }) => state)).toEqual([
    "failed",
    "failed",
  ]);
  for (const verb of ["show", "review"])
    expect((await ask(verb, "a")).json).toMatchObject({ landing: { state: "failed" } });
  expect((await pool.run(["land", "b", "--again"])).code).toBe(0);
  await (await pool.start(["--drain"])).ended;
  expect(pool.alerts()).toMatchObject([
    { alert: "landed_work_lost", message: expect.stringContaining("the work of a had landed") },
  ]);
  expect(repo.git("show", `${TARGET}:b.txt`)).toBe("b");
  // b had begun with what a had landed.
  expect(await statesOf(place)).toEqual({ landed: "2" });
});

test("work that a person has on another branch, or that only lost its name, still counts as landed", async () => {
  const place = await landTwo();
  const { repo } = place;
  repo.git("merge", "-q", "--ff-only", TARGET);
  repo.git("branch", "-D", TARGET);
  expect(await statesOf(place)).toEqual({ landed: "2" });
  // main goes back by one commit: only the work of b is lost.
  repo.git("reset", "-q", "--hard", "HEAD^");
  expect(Object.keys(await statesOf(place))).toEqual(["landed", "b"]);
  // Its commit may be gone altogether.
  fs.rmSync(join(repo.dir, ".git", "refs", "mailchute"), { recursive: true, force: true });
  repo.git("reflog", "expire", "--expire=now", "--all");
  repo.git("gc", "--quiet", "--prune=now");
  expect(Object.keys(await statesOf(place))).toEqual(["landed", "b"]);
});
