/** Run folders: each run has its own, whichever process runs the task. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";

it("a run that follows one that was given back has a folder of its own, also in another process", async () => {
  const pool = newPool();
  const script = 'echo "run $MAILCHUTE_LEASE"; test -e ok || exit 75';
  pool.drop("a", { exec: ["sh", "-c", script], cwd: pool.dir });
  await pool.run(["run", "--max-iterations", "1"]);
  expect(pool.events().map(({ event }) => event)).toContain("released");
  const before = pool.runs();
  fs.writeFileSync(join(pool.dir, "ok"), "");
  await pool.start();
  const { run, attempts } = await pool.result("a");
  // The first claim of each process: neither run is used up.
  expect(attempts).toBe(1);
  expect(before).not.toContain(run);
  const printed = fs.readFileSync(join(pool.state, "runs", String(run), "stdout.log"), "utf8");
  expect(printed.match(/^run /gm)).toHaveLength(1);
});
