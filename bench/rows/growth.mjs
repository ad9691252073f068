/** Whether a long backlog slows the pool: the same warm pool, paused, filled, and resumed with few and with many waiting. */
import fs from "node:fs";
import { join } from "node:path";
import { until } from "../processes.mjs";
import { median } from "../statistics.mjs";

const FEW = 1000;
const MANY = { full: 100_000, quick: 20_000 };
/** Turns with few waiting; their median counts. */
const FEW_TURNS = 11;
/** Before anything counts: the compilers of Node have done their work by then. */
const WARM_UP = 5000;

async function steer(pool, name, command) {
  pool.send(name, command);
  const answer = join(pool.state, "control", "outbox", `${name}_result.json`);
  await until(() => fs.existsSync(answer), command);
}

/** @returns tasks/s from the first start to the last end */
async function drainWaiting(pool, turn, count) {
  await steer(pool, `pause-${turn}`, "pause");
  pool.fill(count, undefined, `n${turn}-`);
  pool.follow();
  await steer(pool, `resume-${turn}`, "resume");
  // Nobody reads the journal meanwhile: that would take a tenth of a core from those who work.
  await until(() => pool.isEmpty(), `${count} tasks`, { limitMs: 300_000, everyMs: 50 });
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  let left = count;
  for (let events = pool.follow(); events.length > 0; events = pool.follow()) {
    for (const { event, task_id, t } of events) {
      if (!task_id.startsWith("n")) continue;
      if (event === "started") firstMs = Math.min(firstMs, t);
      else {
        lastMs = Math.max(lastMs, t);
        left--;
      }
    }
  }
  if (left !== 0) throw new Error(`${left} of ${count} tasks have not ended`);
  return count / ((lastMs - firstMs) / 1000);
}

async function run(bench) {
  const pool = bench.pool();
  await pool.startWarm();
  try {
    let turn = 0;
    await drainWaiting(pool, turn++, WARM_UP);
    const few = [];
    while (few.length < FEW_TURNS) few.push(await drainWaiting(pool, turn++, FEW));
    const many = await drainWaiting(pool, turn++, bench.pick(MANY));
    return { few_rate: median(few), many_rate: many };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "growth",
  title: "Throughput with 1,000 (few) and with 100,000 (many) waiting",
  disks: ["ext4"],
  contestants: [{ name: "mailchute", run }],
  goals: [
    {
      text: "many ≥ 0.9 × few",
      of: (m) => m("mailchute", "many_rate") / m("mailchute", "few_rate"),
      atLeast: 0.9,
    },
  ],
};
