/** A run that waits for a task which a process has claimed that it does not know says so once, and goes on when that is over. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPool, QUICK_CONFIG } from "../support/pool.ts";

const CONFIG = `${QUICK_CONFIG}heartbeat_ms: 500\nlease_ttl_ms: 7000\n`;
const LEASE = `left@abcdefgh261128.1~w-${"0".repeat(12)}-zzzzz-1-1.json`;

async function waitsOf(mode: string): Promise<string[]> {
  const pool = newPool({ config: CONFIG });
  for (const [file, id] of [
    [LEASE, "left"],
    ["plain.json", "plain"],
  ] as const)
    fs.writeFileSync(join(pool.processing, file), JSON.stringify({ id, exec: ["true"] }));
  // The run waits for this one, too, and says nothing of it.
  pool.drop("own", { exec: ["sleep", "0.5"] });
  const { code, stderr } = await pool.run(["run", mode]);
  expect(code, stderr).toBe(0);
  const said = stderr.split("\n").filter((line) => line.includes("this run waits for"));
  expect(
    pool.alerts().filter((one) => said.some((line) => line.includes(String(one["message"])))),
  ).toHaveLength(said.length);
  return said.map((line) => /waits for (\w+)/.exec(line)?.[1] ?? line).sort();
}

test("a run that waits for claims of processes that it does not know says so, once for each", async () => {
  const [drain, once] = await Promise.all([waitsOf("--drain"), waitsOf("--once")]);
  expect(drain).toEqual(["left", "plain"]);
  expect(once).toContain("left");
});
