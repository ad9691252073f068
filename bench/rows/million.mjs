/** A million files in one inbox, filled once: the pool is started on it, run for a while, ended, and started again. */
import { setTimeout as wait } from "node:timers/promises";
import { Pool } from "../pool.mjs";
import { familyOf, memoryMbOf, until } from "../processes.mjs";

const COUNT = 1_000_000;
/** How long each start is watched (ms): the whole inbox has been looked at by then. */
const WATCH_MS = 30_000;

let pool;

async function run(bench) {
  if (pool === undefined) {
    pool = new Pool(bench.dir());
    pool.fill(COUNT);
  }
  // What an earlier start has left.
  while (pool.follow().length > 0);
  pool.start();
  try {
    const started = [];
    const completed = [];
    let memoryMb = 0;
    const look = () => {
      for (const { event, t } of pool.follow()) (event === "started" ? started : completed).push(t);
    };
    const hasStarted = () => {
      look();
      return started.length > 0;
    };
    await until(hasStarted, "a first start", { everyMs: 5 });
    const firstMs = started[0];
    for (const end = performance.now() + WATCH_MS; performance.now() < end; ) {
      await wait(500);
      look();
      const family = familyOf(pool.child.pid);
      memoryMb = Math.max(
        memoryMb,
        family.reduce((sum, pid) => sum + memoryMbOf(pid).pss, 0),
      );
    }
    const lastMs = completed.reduce((last, t) => Math.max(last, t), 0);
    return {
      first_start_ms: firstMs - pool.startedAtMs,
      rate: completed.length / ((lastMs - firstMs) / 1000),
      memory_mb: memoryMb,
    };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "million",
  title: "1,000,000 waiting in one directory (three starts)",
  disks: ["large"],
  isFullOnly: true,
  rounds: 3,
  keepsDirectories: true,
  contestants: [{ name: "mailchute", run }],
  goals: [
    {
      text: "the first task starts within 1 s of the program's start",
      of: (m) => m("mailchute", "first_start_ms"),
      atMost: 1000,
      unit: "ms",
    },
    { text: "≥ 3,000 tasks/s", of: (m) => m("mailchute"), atLeast: 3000 },
    {
      text: "memory of all processes ≤ 400 MB",
      of: (m) => m("mailchute", "memory_mb"),
      atMost: 400,
      unit: "MB",
    },
  ],
};
