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
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: url, logger });
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
    await postgres.close();
  }
}
