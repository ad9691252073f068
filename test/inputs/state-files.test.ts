/** What other programs put in the place of the files that a pool keeps for itself: work goes on, and no process breaks. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { newPool } from "../support/pool.ts";
import { waitFor } from "../support/wait-for.ts";

const task = { exec: ["true"] };

it.each([
  ["analytics", "a file"],
  ["analytics/supervisor_lifecycle.jsonl", "a directory"],
  ["analytics/supervisor_lifecycle.jsonl", "a pipe"],
  ["supervisor_leases.jsonl", "a pipe"],
])("%s: %s in its place is told, and keeps no task", async (path, what) => {
  const pool = newPool();
  const at = join(pool.state, path);
  fs.mkdirSync(dirname(at), { recursive: true });
  if (what === "a pipe") execFileSync("mkfifo", [at]);
  else if (what === "a directory") fs.mkdirSync(at);
  else fs.writeFileSync(at, "");
  const run = await pool.start();
  // More lines than a pipe holds.
  for (let i = 0; i < 200; i++) pool.drop(`a${i}`, task);
  await waitFor(() => pool.settledCount() === 200, { what: "all results", timeoutMs: 30_000 });
  expect((await pool.stop()).exitCode).toBe(0);
  expect(run.stderr()).not.toMatch(/\n {4}at |unexpected:/);
});
