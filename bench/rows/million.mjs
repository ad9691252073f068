/** A million files in one inbox, filled once: the pool is started on it, run for a while, ended, and started again. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { familyOf, memoryMbOf, until } from "../processes.mjs";

const COUNT = 1_000_000;
/** How long each start is watched (ms): the whole inbox has been looked at by then. */
const WATCH_MS = 30_000;

let pool;

async function run(bench) {
  if (pool === undefined) {
    pool = bench.pool();
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

/** What a person types, with a million files in the inbox and no pool beside it. */
function lookAround() {
  const timeMs = (words) => {
    const from = performance.now();
    const args = [pool.launcher, ...words, "--state", pool.state];
    const { status, stderr } = spawnSync(process.execPath, args, {
      stdio: ["ignore", "ignore", "pipe"],
    });
    if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}: ${stderr}`);
    return performance.now() - from;
  };
  const settled = fs.readdirSync(join(pool.state, "mailbox", "outbox"))[0];
  const id = settled.slice(0, -"_result.json".length);
  return {
    status_ms: timeMs(["status"]),
    ls_ms: timeMs(["ls"]),
    ls_waiting_ms: timeMs(["ls", "--state-is", "waiting"]),
    show_ms: timeMs(["show", id]),
    wait_ms: timeMs(["wait", id]),
  };
}

export const row = {
  name: "million",
  title: "1,000,000 waiting in one directory (three starts)",
  disks: ["large"],
  isFullOnly: true,
  rounds: 3,
  keepsDirectories: true,
  // To fill such an inbox takes a minute.
  isPaired: false,
  contestants: [
    { name: "mailchute", run },
    { name: "mailchute, looks", run: async () => lookAround() },
  ],
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
    ...["status", "ls", "ls_waiting", "show", "wait"].map((what) => ({
      text: `${what.replace("_", " ")} ≤ 1 s`,
      of: (m) => m("mailchute, looks", `${what}_ms`),
      atMost: 1000,
      unit: "ms",
    })),
  ],
};
