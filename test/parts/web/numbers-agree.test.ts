/** Each number of the first page is the number of `status --json`: one meaning of done, failed and skipped. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { newPool, type Pool } from "../../support/pool.ts";
import { waitFor } from "../../support/wait-for.ts";
import { blockOf, openWeb } from "./open-web.ts";

interface Counts {
  done: number;
  failed: number;
  skipped: number;
}

/** 3 done, 2 failed, 1 cancelled while it ran, 1 before, 2 skipped. */
async function mixedNight(): Promise<Pool> {
  const pool = newPool({ config: "workers: 1\ndurability: process\nretry: {max_attempts: 1}\n" });
  for (const id of ["a", "b", "c"]) pool.drop(id, { exec: ["true"] });
  for (const id of ["bad1", "bad2"]) pool.drop(id, { exec: ["false"] });
  for (const id of ["s1", "s2"]) pool.drop(id, { exec: ["true"], dependencies: ["bad1"] });
  await pool.run(["run", "--drain"]);
  pool.drop("long", { exec: ["sleep", "1000"], priority: 9 });
  await pool.start();
  await waitFor(() => fs.readdirSync(pool.processing).some((name) => name.startsWith("long")), {
    what: "the long task to run",
  });
  pool.drop("later", { exec: ["true"] });
  // The other way round the slot of the long one would be free for it.
  for (const id of ["later", "long"])
    expect((await pool.run(["cancel", id, "--wait"])).code).toBe(0);
  await pool.stop();
  return pool;
}

async function statusOf(pool: Pool): Promise<Counts & { success: number }> {
  const { counts, metrics } = JSON.parse((await pool.run(["status", "--json"])).stdout);
  return {
    done: counts.done.count,
    failed: counts.failed.count,
    skipped: counts.skipped.count,
    success: metrics.success_rate,
  };
}

const numberIn = (text: unknown): number => Number(/\d+/.exec(String(text))?.[0]);

it("the facts, the failures by cause and the charts of the first page count as status does", async () => {
  const pool = await mixedNight();
  const { success, ...counts } = await statusOf(pool);
  expect(counts).toEqual({ done: 3, failed: 4, skipped: 2 });
  // What was cancelled or skipped does not lower it.
  expect(success).toBe(3 / 5);
  const web = await openWeb(pool.state);
  const page = await web.page("/");
  const { facts } = blockOf(page, "facts");
  for (const [name, count] of Object.entries(counts)) {
    const cell = facts.find(([fact]) => fact === name)?.[1];
    expect(numberIn(typeof cell === "object" ? JSON.stringify(cell) : cell), name).toBe(count);
  }
  const causes = blockOf(page, "table", "Failed, by cause").rows;
  expect(causes.reduce((sum, [times]) => sum + numberIn(times), 0)).toBe(counts.failed);
  const { charts } = blockOf(page, "charts");
  const legend = (title: string): string[] =>
    charts.find((chart) => chart.title === title)?.legend.map(({ text }) => text) ?? [];
  expect(legend("Tasks that ended")).toEqual([`done ${counts.done}`, `failed ${counts.failed}`]);
  const kinds = legend("Failures by kind");
  expect(kinds.reduce((sum, text) => sum + numberIn(text), 0)).toBe(counts.failed);
  expect(kinds.join()).not.toContain("unknown");
});
