/** From the appearance of a file to the start of its handler, when nothing else happens. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { pickUpBullmq } from "../peers/bullmq.mjs";
import { Pool, PROMPT } from "../pool.mjs";
import { until } from "../processes.mjs";
import { quantile } from "../statistics.mjs";

const TIMES = { full: 200, quick: 40 };
/** Idle again, and never in step with anything. */
const pause = () => wait(15 + 20 * Math.random());

async function runMailchute(bench) {
  const times = bench.pick(TIMES);
  const dir = bench.dir();
  const startsPath = join(dir, "starts");
  const pool = new Pool(dir, {
    workers: 8,
    handler: `import fs from "node:fs";
export default (task, ctx) => {
  const ns = process.hrtime.bigint();
  fs.appendFileSync(${JSON.stringify(startsPath)}, \`\${task.title} \${ns}\\n\`);
};\n`,
  });
  await pool.startWarm();
  try {
    const droppedNs = [];
    for (let i = 0; i < times; i++) {
      await pause();
      droppedNs.push(pool.drop(`t${i}`, { title: String(i), prompt: PROMPT }));
    }
    const starts = () =>
      fs
        .readFileSync(startsPath, "utf8")
        .split("\n")
        .filter((line) => /^\d/.test(line));
    await until(() => starts().length >= times, "all handlers", { everyMs: 20 });
    return inMs(
      starts().map((line) => {
        const [index, ns] = line.split(" ");
        return Number(BigInt(ns) - droppedNs[Number(index)]) / 1e6;
      }),
    );
  } finally {
    await pool.stop();
  }
}

const inMs = (latencies) => ({
  median_ms: quantile(latencies, 0.5),
  p99_ms: quantile(latencies, 0.99),
});

export const row = {
  name: "pick-up",
  title: "Dropped file to the start of its handler, idle",
  disks: ["ext4"],
  contestants: [
    { name: "mailchute", run: runMailchute },
    {
      name: "BullMQ, add to start",
      needs: ["redis-server", "bullmq"],
      run: async (bench) => inMs(await pickUpBullmq(bench.dir(), bench.pick(TIMES), pause)),
    },
  ],
  goals: [
    { text: "median ≤ 1 ms", of: (m) => m("mailchute", "median_ms"), atMost: 1, unit: "ms" },
    { text: "p99 ≤ 5 ms", of: (m) => m("mailchute", "p99_ms"), atMost: 5, unit: "ms" },
    {
      text: "median ≤ 1.0 × BullMQ's",
      of: (m) => m("mailchute", "median_ms") / m("BullMQ, add to start", "median_ms"),
      atMost: 1,
    },
    {
      text: "p99 ≤ 1.0 × BullMQ's",
      of: (m) => m("mailchute", "p99_ms") / m("BullMQ, add to start", "p99_ms"),
      atMost: 1,
    },
  ],
};
