/** A run with --once fires what is due at its start, and nothing that becomes due while it has other work. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";

it("fires with --once a time that passed before, and none of those that come during the run", async () => {
  const pool = newPool();
  fs.mkdirSync(join(pool.state, "schedules"));
  const yaml = "every: 1s\noverlap: allow\nmissed: all\ntask: {exec: ['true']}\n";
  fs.writeFileSync(join(pool.state, "schedules", "tick.yaml"), yaml);
  const fired = (): string[] =>
    pool
      .results()
      .map(({ task_id: id }) => id)
      .filter((id) => id.startsWith("tick."))
      .sort();
  const timeOf = (id: string): string => id.slice("tick.".length);
  await pool.start();
  await waitFor(() => fired().length > 0, { what: "its first task" });
  await pool.stop();
  const before = fired();
  const isDue = (): boolean => stamp(Date.now() - 1000) > timeOf(before.at(-1) ?? "");
  await waitFor(isDue, { what: "a time that is due" });
  pool.drop("long", { exec: ["sleep", "3"] });
  const fromText = stamp(Date.now());
  expect((await pool.run(["run", "--once"])).code).toBe(0);
  const during = fired().filter((id) => !before.includes(id));
  expect(during.length).toBeGreaterThan(0);
  const ended = pool
    .events()
    .find((one) => one["task_id"] === "long" && one["event"] === "completed");
  // The long task begins about at the start of the run, and takes three seconds.
  const limit = stamp(Date.parse(String(ended?.["timestamp"])) - 1000);
  expect(during.filter((id) => timeOf(id) > limit)).toEqual([]);
  expect(timeOf(during[0] ?? "") <= fromText).toBe(true);
  // The times that passed in the meantime are made up by the next run, as missed ones.
  await waitFor(() => stamp(Date.now() - 2000) > limit, { what: "two times that are due" });
  expect((await pool.run(["run", "--once"])).code).toBe(0);
  const all = fired().map(timeOf);
  expect(all.filter((time) => time > limit).length).toBeGreaterThan(1);
});

/** As the ids of scheduled tasks have it. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, "");
}
