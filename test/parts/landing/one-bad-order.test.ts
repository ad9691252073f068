/** A landing that cannot even be submitted holds up no other, and no drain; neither does a folder of landings that cannot be read. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { inWorktree, newPlace } from "../worktrees/place.ts";

const TARGET = "mailchute/integration";

it("lands the others, tells of the one that fails, and ends the drain", async () => {
  const { pool, repo } = newPlace();
  const folder = join(pool.state, "landings");
  fs.mkdirSync(folder, { recursive: true });
  // Its repository is missing, so nothing that is made from it can be made.
  const order = { v: 1, task_id: "bad", lease: "x", land: "merge", target: TARGET, branch: "b" };
  fs.writeFileSync(join(folder, "bad.order.json"), JSON.stringify(order));
  for (const id of ["v1.", "v2"])
    pool.drop(
      id,
      inWorktree(`echo ${id} > ${id}txt; commit`, { land: "merge", on_success: ["true"] }),
    );
  await (await pool.start(["--drain"])).ended;
  expect(repo.git("log", "--format=%s", TARGET).split("\n")).toHaveLength(3);
  const ids = pool.results().map(({ task_id: id }) => id);
  expect(ids).toContainEqual(expect.stringMatching(/^v1\.-[0-9a-f]{16}\.land$/));
  expect(ids).toContainEqual(expect.stringMatching(/^v1\.-[0-9a-f]{16}\.\w+\.on_success$/));
  expect(ids).toContain("v2.land");
  const alerts = fs.readFileSync(join(pool.state, "analytics", "alerts.jsonl"), "utf8");
  expect(alerts).toContain("the landing of bad: ");
});

it("lets dependent tasks wait while the landings cannot be read, and runs them afterwards", async () => {
  const pool = newPool();
  const folder = join(pool.state, "landings");
  fs.writeFileSync(folder, "");
  pool.drop("a", { exec: ["true"] });
  pool.drop("b", { exec: ["true"], dependencies: ["a"] });
  await pool.start();
  await pool.result("a");
  await waitFor(() => pool.alerts().some((one) => String(one["message"]).includes(folder)), {
    what: "an alert that names the folder",
  });
  // In a pass of its own, so that each event of the first task has been handled.
  await pool.stop();
  await (await pool.start(["--drain"])).ended;
  expect(pool.results().map(({ task_id: id }) => id)).toEqual(["a"]);
  await pool.start();
  fs.rmSync(folder);
  await pool.result("b");
});

it("a task of a person with the id of a landing is not taken for it, and not run again", async () => {
  const { pool, repo } = newPlace();
  const ran = join(pool.dir, "ran");
  pool.drop("a.land", { exec: ["sh", "-c", `echo once >> ${ran}`] });
  pool.drop("a", inWorktree("echo a > a.txt; commit", { land: "merge" }));
  await (await pool.start(["--drain"])).ended;
  const told = pool.alerts().map((one) => String(one["message"]));
  expect(told).toContainEqual(expect.stringContaining("another task has the id a.land"));
  expect((await pool.run(["show", "a"])).stdout).toMatch(
    /landing +a\.land .*about to be submitted/,
  );
  const again = await pool.run(["land", "a"]);
  expect(again.code).toBe(4);
  expect(again.stderr).toMatch(/ErrTaskExists.*\n.*a\.land_result\.json\n.*mailchute land a/);
  expect(fs.readFileSync(ran, "utf8")).toBe("once\n");
  fs.rmSync(join(pool.outbox, "a.land_result.json"));
  await (await pool.start(["--drain"])).ended;
  expect(repo.git("log", "--format=%s", TARGET).split("\n")).toHaveLength(2);
  expect((await pool.run(["show", "a"])).stdout).toMatch(/landing +a\.land landed/);
});
