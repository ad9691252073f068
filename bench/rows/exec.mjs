/** Tasks that run a program: `true`, so that nothing but starting it is measured. */
import { ABREAST, runNq, runTaskSpooler, spawnBare } from "../peers/shell-queues.mjs";
import { until } from "../processes.mjs";

const COUNT = { full: 1000, quick: 200 };

async function runMailchute(bench) {
  const count = bench.pick(COUNT);
  const pool = bench.pool({ workers: ABREAST });
  await pool.startWarm();
  try {
    pool.follow();
    const fromMs = performance.timeOrigin + performance.now();
    for (let i = 0; i < count; i++) pool.drop(`t${i}`, { exec: ["true"] });
    let left = count;
    let lastMs = 0;
    await until(
      () => {
        for (const { event, t } of pool.follow()) {
          if (event !== "completed") continue;
          left--;
          lastMs = Math.max(lastMs, t);
        }
        return left <= 0;
      },
      "all programs",
      { everyMs: 20 },
    );
    return { rate: count / ((lastMs - fromMs) / 1000) };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "exec",
  title: "`exec` of `true`",
  disks: ["ext4"],
  chart: "rate",
  contestants: [
    { name: "mailchute", run: runMailchute },
    { name: "bare spawn, Node", run: (bench) => spawnBare(bench.pick(COUNT)) },
    {
      name: "task-spooler",
      needs: ["tsp"],
      run: (bench) => runTaskSpooler(bench.dir(), bench.pick(COUNT)),
    },
    { name: "nq", needs: ["nq"], run: (bench) => runNq(bench.dir(), bench.pick(COUNT)) },
  ],
  goals: [
    {
      text: "≥ 0.8 × bare spawn",
      of: (m) => m("mailchute") / m("bare spawn, Node"),
      atLeast: 0.8,
    },
    { text: "≥ 1.0 × task-spooler", of: (m) => m("mailchute") / m("task-spooler"), atLeast: 1 },
  ],
};
