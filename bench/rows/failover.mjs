/** A worker process is killed with SIGKILL: how long until the task that it ran runs again. */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { until } from "../processes.mjs";
import { median, quantile } from "../statistics.mjs";

const TIMES = { full: 10, quick: 4 };
/** Between the start of a new worker process and the next kill. */
const PAUSE_MS = 300;

async function run(bench, processes) {
  const dir = bench.dir();
  const startsPath = join(dir, "starts");
  fs.writeFileSync(startsPath, "");
  const settings = { processes, workers: processes };
  const handler = `import fs from "node:fs";
export default (task, ctx) => {
  const ns = process.hrtime.bigint();
  fs.appendFileSync(${JSON.stringify(startsPath)}, \`\${task.title} \${ctx.attempt} \${process.pid} \${ns}\\n\`);
  // The first run never ends by itself.
  return ctx.attempt > 1 || task.title === "warm" ? null : new Promise(() => {});
};\n`;
  const pool = bench.pool({ ...settings, handler }, dir);
  const startOf = (title, attempt) =>
    until(
      () =>
        fs
          .readFileSync(startsPath, "utf8")
          .split("\n")
          .map((line) => line.split(" "))
          .find((fields) => fields[0] === title && fields[1] === String(attempt)),
      `run ${attempt} of ${title}`,
    );
  await pool.startWarm();
  try {
    const latencies = [];
    for (let i = 0; i < bench.pick(TIMES); i++) {
      await pool.workersReady(processes + i);
      await wait(PAUSE_MS);
      const title = `n${i}`;
      pool.drop(title, { title });
      const [, , pid] = await startOf(title, 1);
      const killedNs = process.hrtime.bigint();
      process.kill(Number(pid), "SIGKILL");
      const [, , , ns] = await startOf(title, 2);
      latencies.push(Number(BigInt(ns) - killedNs) / 1e6);
    }
    return { median_ms: median(latencies), worst_ms: quantile(latencies, 1) };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "failover",
  title: "Worker killed to its task running again",
  disks: ["ext4"],
  contestants: [
    { name: "mailchute, one worker process", run: (bench) => run(bench, 1) },
    { name: "mailchute, with a spare worker", run: (bench) => run(bench, 2) },
  ],
  goals: [
    {
      text: "≤ 200 ms",
      of: (m) => m("mailchute, one worker process", "median_ms"),
      atMost: 200,
      unit: "ms",
    },
    {
      text: "≤ 30 ms with a spare worker",
      of: (m) => m("mailchute, with a spare worker", "median_ms"),
      atMost: 30,
      unit: "ms",
    },
  ],
};
