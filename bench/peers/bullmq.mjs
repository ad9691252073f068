/** BullMQ on a Redis server of our own. */
import { PROMPT } from "../pool.mjs";
import { Crew } from "./crew.mjs";
import { openRedis } from "./redis.mjs";

/** Jobs that one addBulk takes. */
const CHUNK = 1000;
const QUEUE = "bench";

/**
 * @param appendfsync `everysec` or `always`
 * @param addsOnly leaves out the workers
 * @returns {Promise<{rate: number}>} jobs/s that the worker processes process, or that addBulk takes
 */
export async function drainBullmq(
  dir,
  count,
  appendfsync,
  { addsOnly = false, processes = 2 } = {},
) {
  const redis = await openRedis(dir, appendfsync);
  const { Queue } = await import("bullmq");
  const queue = new Queue(QUEUE, { connection: redis.connection });
  const crew = new Crew("bullmq-worker.mjs", processes, {
    ...redis,
    queue: QUEUE,
    concurrency: 25,
  });
  try {
    await Promise.all([crew.ready(), queue.waitUntilReady()]);
    const from = performance.now();
    for (let i = 0; i < count; i += CHUNK)
      await queue.addBulk(
        Array.from({ length: Math.min(CHUNK, count - i) }, (_, k) => ({
          name: "task",
          data: { id: i + k, prompt: PROMPT },
        })),
      );
    if (addsOnly) return { rate: count / ((performance.now() - from) / 1000) };
    crew.go();
    return await crew.rate(count);
  } finally {
    await crew.stop();
    await queue.close();
    await redis.close();
  }
}

/**
 * One job at a time on an idle queue.
 * @param pause resolves when the next may be added
 * @returns {Promise<number[]>} ms from before `add` to the start of its handler, of each
 */
export async function pickUpBullmq(dir, times, pause, appendfsync = "everysec") {
  const redis = await openRedis(dir, appendfsync);
  const { Queue } = await import("bullmq");
  const queue = new Queue(QUEUE, { connection: redis.connection });
  const settings = { ...redis, queue: QUEUE, concurrency: 8, keepsStarts: true };
  const crew = new Crew("bullmq-worker.mjs", 1, settings);
  try {
    await Promise.all([crew.ready(), queue.waitUntilReady()]);
    crew.go();
    const addedMs = [];
    for (let i = 0; i < times; i++) {
      await pause();
      addedMs.push(Number(process.hrtime.bigint()) / 1e6);
      await queue.add("task", { id: i, prompt: PROMPT });
    }
    await crew.rate(times);
    return crew.members[0].tally.startsMs.map((startMs, i) => startMs - addedMs[i]);
  } finally {
    await crew.stop();
    await queue.close();
    await redis.close();
  }
}
