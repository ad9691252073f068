/** graphile-worker on a PostgreSQL server of our own. */
import { PROMPT } from "../pool.mjs";
import { Crew } from "./crew.mjs";
import { openPostgres } from "./postgres.mjs";

const CHUNK = 1000;

/**
 * @param isBatched with its local queue and batched completion
 * @param synchronousCommit `off`: survives the death of any process, like our `process`; `on`: a power cut too
 * @param addsOnly leaves out the workers
 * @returns {Promise<{rate: number}>} jobs/s of two worker processes, or of addJobs
 */
export async function drainGraphile(
  dir,
  count,
  { isBatched = true, synchronousCommit = "off", addsOnly = false } = {},
) {
  const postgres = await openPostgres(dir);
  const url = postgres.url(synchronousCommit);
  const { Logger, makeWorkerUtils } = await import("graphile-worker");
  const { default: pg } = await import("pg");
  // A pool of our own, because it must have ended before the server does.
  const pgPool = new pg.Pool({ connectionString: url });
  pgPool.on("error", () => {});
  pgPool.on("connect", (client) => client.on("error", () => {}));
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool, logger });
  let crew;
  try {
    await utils.migrate();
    crew = new Crew("graphile-worker.mjs", 2, { url, isBatched });
    await crew.ready();
    const from = performance.now();
    for (let i = 0; i < count; i += CHUNK)
      await utils.addJobs(
        Array.from({ length: Math.min(CHUNK, count - i) }, (_, k) => ({
          identifier: "task",
          payload: { id: i + k, prompt: PROMPT },
        })),
      );
    if (addsOnly) return { rate: count / ((performance.now() - from) / 1000) };
    crew.go();
    return await crew.rate(count);
  } finally {
    await crew?.stop();
    await utils.release();
    await pgPool.end();
    await postgres.close();
  }
}
