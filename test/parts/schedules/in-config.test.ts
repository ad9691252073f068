/** Schedules in config.yaml: they fire as those in files do, and one name in both places is an error that names both. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool, QUICK_CONFIG } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

const EVERY = "{every: 1s, task: {exec: ['true']}}";

it("a schedule in config.yaml fires, is listed and paused, and its name is in no file as well", async () => {
  const pool = newPool({
    config: `${QUICK_CONFIG}\nschedules: {often: ${EVERY}, bad: {every: 0s}, "../x": {}}\n`,
  });
  await pool.start();
  const hasFired = (): boolean =>
    pool.results().filter(({ task_id: id }) => id.startsWith("often.")).length > 1;
  await waitFor(hasFired, { what: "two of its times" });
  const listed = await pool.run(["schedule", "ls"]);
  expect([listed.code, listed.stdout]).toEqual([1, expect.stringMatching(/often +every 1 s/)]);
  expect(listed.stderr).toContain("config.yaml, schedules.bad: every: ");
  const shown = await pool.run(["schedule", "show", "often"]);
  expect(shown.stdout).toContain(join(pool.state, "config.yaml"));
  expect((await pool.run(["schedule", "pause", "often"])).code).toBe(0);
  expect((await pool.run(["schedule", "pause", "../x"])).stderr).toContain(
    "is no name of a schedule",
  );
  await pool.stop();
  // Its decisions are kept, although no folder of schedules was there: the next supervisor knows which times it has missed.
  const log = join(pool.state, "schedules", ".log", "often.json");
  expect(JSON.parse(fs.readFileSync(log, "utf8"))).toMatchObject({
    v: 1,
    fired: expect.any(Number),
  });
  expect(fs.readFileSync(join(pool.state, "analytics", "alerts.jsonl"), "utf8")).not.toContain(
    "ENOENT",
  );
  expect((await pool.run(["schedule", "ls"])).stdout).toMatch(/often .*paused/);
  // A file of the same name: neither of them counts.
  fs.mkdirSync(join(pool.state, "schedules"), { recursive: true });
  fs.writeFileSync(join(pool.state, "schedules", "often.yaml"), "every: 1s\ntask: {exec: [x]}\n");
  const both = await pool.run(["schedule", "next", "often"]);
  expect(both.stderr).toContain("schedules/often.yaml is a schedule of this name, too");
  expect(both.stderr).toContain("remove that file, or schedules.often in config.yaml");
});
