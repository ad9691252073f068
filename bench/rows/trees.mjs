/** Twenty pools on one machine: what they cost when all have work, and when none has. */
import { setTimeout as wait } from "node:timers/promises";
import { cpuSecondsOf, familyOf, memoryMbOf, until } from "../processes.mjs";

const TREES = 20;
const TASKS = { full: 1000, quick: 200 };
const SETTLE_MS = { full: 25_000, quick: 10_000 };
const WINDOW_MS = { full: 20_000, quick: 10_000 };

async function run(bench) {
  const tasks = bench.pick(TASKS);
  const pools = Array.from({ length: TREES }, () => bench.pool({ processes: 1, workers: 4 }));
  try {
    for (const pool of pools) await pool.startWarm();
    for (const pool of pools) pool.fill(tasks);
    const isOver = (pool) => pool.events().filter(isEnd).length >= tasks;
    await until(() => pools.every(isOver), "all tasks", { everyMs: 250, limitMs: 300_000 });
    const spans = pools.map((pool) =>
      pool
        .events()
        .filter(isOfFill)
        .map(({ t }) => t),
    );
    const seconds = (Math.max(...spans.flat()) - Math.min(...spans.flat())) / 1000;
    await wait(bench.pick(SETTLE_MS));
    const all = pools.flatMap(({ child }) => familyOf(child.pid));
    const cpuSeconds = () => all.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
    const fromS = cpuSeconds();
    const fromMs = performance.now();
    await wait(bench.pick(WINDOW_MS));
    const share = (cpuSeconds() - fromS) / ((performance.now() - fromMs) / 1000);
    return {
      rate: (TREES * tasks) / seconds,
      idle_percent: 100 * share,
      all_mb: all.reduce((sum, pid) => sum + memoryMbOf(pid).pss, 0),
    };
  } finally {
    await Promise.all(pools.map((pool) => pool.stop()));
  }
}

const isOfFill = ({ task_id }) => task_id.startsWith("t");
const isEnd = (one) => one.event === "completed" && isOfFill(one);

export const row = {
  name: "trees",
  title: "20 pools at once: 1,000 tasks in each, then none",
  disks: ["ext4"],
  rounds: 3,
  // It takes a minute and 60 processes.
  isPaired: false,
  contestants: [{ name: "mailchute", run }],
  goals: [
    {
      text: "idle ≤ 20 × 0.3 % of a core",
      of: (m) => m("mailchute", "idle_percent"),
      atMost: 6,
      unit: "%",
    },
  ],
};
