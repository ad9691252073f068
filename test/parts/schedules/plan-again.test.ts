/** A schedule that runs the plan once more, by the code of `roadmap reset`. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readSchedule } from "../../../src/parts/schedules/schedule.ts";
import { newPool } from "../../support/pool.ts";

it("resets the plan when its time comes, and a drain waits for the plan", async () => {
  const pool = newPool();
  const ran = join(pool.dir, "ran");
  fs.writeFileSync(
    join(pool.state, "roadmap.yaml"),
    `nodes: [{ id: a, exec: [sh, -c, 'echo a >> ${ran}'] }, { id: b, status: blocked }]\n`,
  );
  fs.mkdirSync(join(pool.state, "schedules"));
  const file = join(pool.state, "schedules", "nightly.yaml");
  fs.writeFileSync(file, 'cron: "0 3 1 1 *"\nroadmap: reset\n');
  const drain = (): ReturnType<typeof pool.run> => pool.run(["run", "--drain", "--no-live"]);
  await drain();
  const id = (await pool.run(["schedule", "run", "nightly"])).stdout.trim();
  await drain();
  expect(await pool.result(id)).toMatchObject({
    status: "completed",
    output: { opened: 1, nodes: ["a"], left: ["b"] },
  });
  expect(fs.readFileSync(ran, "utf8")).toBe("a\na\n");
  // A time that has come while no supervisor ran.
  fs.writeFileSync(file, "every: 1s\nroadmap: { reset: failed }\n");
  await drain();
  expect((await pool.run(["schedule", "ls", "--json"])).stdout).toContain('"error":null');
  expect(fs.readFileSync(ran, "utf8")).toBe("a\na\n");
});

it.each([
  ["roadmap: once", "does not say what"],
  ["roadmap: { reset: [] }", "does not say what"],
  ["roadmap: { reset: ['a b'] }", "does not say what"],
  ["roadmap: { reset: all, failed: true }", "does not say what"],
  ["roadmap: { reset: all, downstream: 1 }", "does not say what"],
  ["roadmap: reset\ntask: {exec: ['true']}", "exclude each other"],
  ["roadmap: reset\noverlap: replace", "cannot be reset"],
  ["roadmap: reset\noverlap: allow", "cannot be reset"],
])("%j is refused", (text, why) => {
  expect(() => readSchedule("s", `every: 1h\n${text}\n`, "s.yaml", "UTC")).toThrow(why);
});
