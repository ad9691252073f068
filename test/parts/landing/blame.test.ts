/** A run changes the settings of the repository: who is asked, what waits, and what one command releases. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

const TARGET = "mailchute/integration";
const lands = (script: string, more: object = {}) => inWorktree(script, { land: "merge", ...more });

test("one run changes settings while others run: all are told who ran, and one command lands them all", async () => {
  const { pool, repo } = newPlace();
  const go = join(pool.dir, "go");
  const until = (file: string): string => `until [ -e ${file} ]; do sleep 0.05; done`;
  const begun = (id: string): string => join(pool.dir, `${id}-begun`);
  // All three are at work when a changes the settings, and none ends before that.
  const work = (id: string, then: string): string =>
    `touch ${begun(id)}; ${until(go)}; ${then}; echo ${id} > ${id}.txt`;
  pool.drop("a", lands(work("a", `git config filter.bad.clean false; touch ${go}.done`)));
  for (const id of ["b", "c"]) pool.drop(id, lands(work(id, until(`${go}.done`))));
  await pool.start();
  await waitFor(() => ["a", "b", "c"].every((id) => fs.existsSync(begun(id))), {
    what: "the runs",
  });
  fs.writeFileSync(go, "");
  for (const id of ["a", "b", "c"]) {
    const { error } = await pool.error(`${id}.land`);
    expect(error).toContain("filter.bad.clean");
    expect(error).toContain("one of these runs changed settings or hooks, or a person did");
    for (const other of ["a", "b", "c"]) expect(error).toMatch(new RegExp(`\\b${other}\\b`));
    expect(error).toContain(`mailchute land ${id} --accept-settings`);
  }
  expect(pool.alerts().filter((one) => one["alert"] === "repository_settings")).toHaveLength(1);
  // It began after the change.
  pool.drop("later", lands("echo later > later.txt"));
  await pool.result("later.land");
  const { stdout } = await pool.run(["land", "b", "--accept-settings"]);
  expect(stdout.trim().split("\n").sort()).toEqual(["a.land", "b.land", "c.land"]);
  for (const id of ["a", "b", "c"]) await pool.result(`${id}.land`);
  for (const id of ["a", "b", "c", "later"])
    expect(repo.git("cat-file", "-p", `${TARGET}:${id}.txt`)).toBe(id);
  expect(repo.git("for-each-ref", "--format=%(refname)", "refs/mailchute")).not.toContain(
    "settings-changed",
  );
  await pool.stop();
});

test("the only run that was at work is told that it did it; what a person changes between runs holds nothing", async () => {
  const { pool, repo } = newPlace();
  repo.git("config", "filter.mine.clean", "cat");
  pool.drop("a", lands("echo a > a.txt"));
  await (await pool.start(["--drain"])).ended;
  await pool.result("a.land");
  repo.git("config", "filter.mine.clean", "sed s/x/y/");
  repo.commit({ ".gitattributes": "f.txt filter=mine\n" });
  pool.drop("b", lands("echo x > f.txt; git config core.pager evil"));
  pool.drop("c", lands("echo x > f.txt", { metadata: { dependencies: ["b"] } }));
  await waitFor(() => true, { what: "nothing" });
  const running = await pool.start();
  const { error } = await pool.error("b.land");
  expect(error).toContain("a run of b changed settings or hooks");
  expect(error).toContain("core.pager");
  // It was committed with the filter of the person.
  expect(repo.git("cat-file", "-p", "mailchute/b:f.txt")).toBe("y");
  await pool.run(["land", "b", "--accept-settings"]);
  await pool.result("c");
  await pool.stop();
  await running.ended;
});
