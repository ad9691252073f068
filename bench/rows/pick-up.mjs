/** From the appearance of a file to the start of its handler, when nothing else happens. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startBarePool } from "../floors/floors.mjs";
import { pickUpBullmq } from "../peers/bullmq.mjs";
import { PROMPT } from "../pool.mjs";
import { until } from "../processes.mjs";
import { quantile } from "../statistics.mjs";

const TIMES = { full: 200, quick: 40 };
/** Idle again, and never in step with anything. */
const pause = () => wait(15 + 20 * Math.random());

async function runMailchute(bench) {
  const times = bench.pick(TIMES);
  const dir = bench.dir();
  const startsPath = join(dir, "starts");
  const handler = `import fs from "node:fs";
export default (task, ctx) => {
  const ns = process.hrtime.bigint();
  fs.appendFileSync(${JSON.stringify(startsPath)}, \`\${task.title} \${ns}\\n\`);
};\n`;
  const pool = bench.pool({ workers: 8, handler }, dir);
  await pool.startWarm();
  try {
    const droppedNs = [];
    for (let i = 0; i < times; i++) {
      await pause();
      droppedNs.push(pool.drop(`t${i}`, { title: String(i), prompt: PROMPT }));
    }
    return inMs(await latenciesOf(startsPath, droppedNs));
  } finally {
    await pool.stop();
  }
}

/** What two renames, a message and two processes that wait for something cost when nothing is decided. */
async function runBarePool(bench) {
  const dir = bench.dir();
  const staged = join(dir, "next");
  const pool = await startBarePool(dir);
  try {
    const droppedNs = [];
    for (let i = 0; i < bench.pick(TIMES); i++) {
      await pause();
      fs.writeFileSync(staged, JSON.stringify({ title: String(i), prompt: PROMPT }));
      droppedNs.push(process.hrtime.bigint());
      fs.renameSync(staged, join(pool.inbox, `t${i}.json`));
    }
    return inMs(await latenciesOf(join(dir, "starts"), droppedNs));
  } finally {
    await pool.stop();
  }
}

/** Waits for the line of each start: number of the task, process.hrtime (ns). @returns ms */
async function latenciesOf(startsPath, droppedNs) {
  const starts = () =>
    fs
      .readFileSync(startsPath, "utf8")
      .split("\n")
      .filter((line) => /^\d/.test(line));
  await until(() => starts().length >= droppedNs.length, "all handlers", { everyMs: 20 });
  return starts().map((line) => {
    const [index, ns] = line.split(" ");
    return Number(BigInt(ns) - droppedNs[Number(index)]) / 1e6;
  });
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
    { name: "bare pool, Node", run: runBarePool },
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
