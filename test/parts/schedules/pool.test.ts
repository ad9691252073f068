/** Schedules of a real pool whose supervisor is killed again and again: each time runs once, and none is left out. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool } from "../../support/pool.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { waitFor } from "../../support/wait-for.ts";
import { IS_WHOLE } from "../../support/walks.ts";

const KILLS = IS_WHOLE ? 12 : 5;

test("with missed: all each second has one task, although the supervisor is killed again and again", async () => {
  const seed = Number(process.env["MAILCHUTE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = seededRandom(seed);
  const pool = newPool();
  const file = join(pool.dir, "ran");
  fs.mkdirSync(join(pool.state, "schedules"), { recursive: true });
  const task = JSON.stringify({
    exec: ["sh", "-c", `echo $MAILCHUTE_SCHEDULED_FOR >> ${file}`],
    max_attempts: 50,
  });
  fs.writeFileSync(
    join(pool.state, "schedules", "tick.yaml"),
    `every: 1s\nmissed: all\nmissed_max: 1000\noverlap: allow\ntask: ${task}\n`,
  );
  const records = (): string[] => pool.results().map((record) => record.task_id);
  for (let kill = 0; kill < KILLS; kill++) {
    const before = records().length;
    const { child } = await pool.start();
    await waitFor(() => records().length > before, { what: "a task of the schedule" });
    // At any moment of a decision, which comes each second.
    await new Promise((resolve) => setTimeout(resolve, random.below(1100)));
    child.kill("SIGKILL");
  }
  await pool.start();
  const before = records().length;
  await waitFor(() => records().length > before + 2, { what: "the last tasks" });
  await pool.run(["schedule", "pause", "tick"]);
  await pool.run(["wait", "--timeout", "60s"]);
  await pool.stop();
  expect(pool.errors()).toEqual([]);
  const seconds = records()
    .map((id) => id.slice("tick.".length))
    .map((text) =>
      Date.parse(text.replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/, "$1-$2-$3T$4:$5:$6Z")),
    )
    .sort((a, b) => a - b);
  const [first = 0] = seconds;
  expect(seconds, `seed ${seed}`).toEqual(seconds.map((_, i) => first + i * 1000));
  // A program may run again when its worker dies; a time that was settled never does.
  const ran = new Set(fs.readFileSync(file, "utf8").trim().split("\n"));
  expect(ran.size, `seed ${seed}`).toBe(seconds.length);
});
