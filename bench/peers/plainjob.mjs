/** plainjob on better-sqlite3: a database file on the disk that is measured. */
import { join } from "node:path";
import { PROMPT } from "../pool.mjs";
import { Crew } from "./crew.mjs";

export const QUIET = { debug() {}, info() {}, warn() {}, error: console.error };

/**
 * @param addsOnly leaves out the worker
 * @returns {Promise<{rate: number}>} jobs/s of one worker process (two would wait for each other), or of addMany
 */
export async function drainPlainjob(dir, count, addsOnly = false) {
  const { default: Database } = await import("better-sqlite3");
  const { better, defineQueue } = await import("plainjob");
  const path = join(dir, "jobs.db");
  const queue = defineQueue({ connection: better(new Database(path)), logger: QUIET });
  const crew = new Crew("plainjob-worker.mjs", 1, { path });
  try {
    await crew.ready();
    const from = performance.now();
    queue.addMany(
      "task",
      Array.from({ length: count }, (_, id) => ({ id, prompt: PROMPT })),
    );
    if (addsOnly) return { rate: count / ((performance.now() - from) / 1000) };
    crew.go();
    return await crew.rate(count);
  } finally {
    await crew.stop();
    queue.close();
  }
}
