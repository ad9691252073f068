/** What a pool costs that has nothing to do. */
import { setTimeout as wait } from "node:timers/promises";
import { cpuSecondsOf, familyOf, memoryMbOf } from "../processes.mjs";

const WINDOW_MS = { full: 20_000, quick: 10_000 };
/** After its first tasks: for about this long the compiler and the garbage collector are still at work. */
const SETTLE_MS = 25_000;

async function run(bench) {
  const pool = bench.pool();
  await pool.startWarm();
  try {
    await wait(SETTLE_MS);
    const family = familyOf(pool.child.pid);
    const cpuSeconds = () => family.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
    const fromS = cpuSeconds();
    const fromMs = performance.now();
    await wait(bench.pick(WINDOW_MS));
    const share = (cpuSeconds() - fromS) / ((performance.now() - fromMs) / 1000);
    return {
      cpu_percent: 100 * share,
      supervisor_mb: memoryMbOf(pool.child.pid).rss,
      all_mb: family.reduce((sum, pid) => sum + memoryMbOf(pid).pss, 0),
    };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "idle",
  title: "Idle, with 2 worker processes",
  disks: ["ext4"],
  contestants: [{ name: "mailchute", run }],
  goals: [
    {
      text: "≤ 0.3 % of a core",
      of: (m) => m("mailchute", "cpu_percent"),
      atMost: 0.3,
      unit: "%",
    },
    {
      text: "supervisor ≤ 70 MB",
      of: (m) => m("mailchute", "supervisor_mb"),
      atMost: 70,
      unit: "MB",
    },
  ],
};
