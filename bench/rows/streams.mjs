/** Fifty programs that each write 1 MB/s, for as long as small tasks are dropped beside them: what the noise costs, and whom. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { cpuSecondsOf, memoryMbOf, until } from "../processes.mjs";
import { quantile } from "../statistics.mjs";

const PROGRAMS = 50;
const WINDOW_MS = { full: 20_000, quick: 8000 };
const PAUSE_MS = 100;
/** Lines of JSON, as an agent writes them; in C, so that the writers cost little. */
const WRITER = `#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char text[901];
  memset(text, 'x', 900);
  text[900] = 0;
  for (long n = 0;; n++) {
    for (int i = 0; i < 100; i++)
      if (printf("{\\"type\\":\\"text\\",\\"n\\":%ld,\\"text\\":\\"%s\\"}\\n", n, text) < 0) return 1;
    fflush(stdout);
    usleep(95000);
  }
}
`;

async function run(bench) {
  const dir = bench.dir();
  const startsPath = join(dir, "starts");
  fs.writeFileSync(startsPath, "");
  fs.writeFileSync(join(dir, "writer.c"), WRITER);
  execFileSync("cc", ["-O1", "-o", join(dir, "writer"), join(dir, "writer.c")]);
  const handler = `import fs from "node:fs";
export default (task) => {
  const ns = process.hrtime.bigint();
  fs.appendFileSync(${JSON.stringify(startsPath)}, \`\${task.title} \${ns}\\n\`);
};\n`;
  const settings = { workers: PROGRAMS + 8, grace_ms: 100 };
  const pool = bench.pool({ ...settings, handler }, dir);
  await pool.startWarm();
  try {
    for (let i = 0; i < PROGRAMS; i++) pool.drop(`program-${i}`, { exec: [join(dir, "writer")] });
    const started = new Set();
    const areRunning = () => {
      for (const { event, task_id } of pool.follow())
        if (event === "started" && task_id.startsWith("program-")) started.add(task_id);
      return started.size === PROGRAMS;
    };
    await until(areRunning, "all programs", { everyMs: 20 });
    await wait(1000);
    const supervisor = pool.child.pid;
    const fromS = cpuSecondsOf(supervisor);
    const fromMs = performance.now();
    const dropped = new Map();
    while (performance.now() - fromMs < bench.pick(WINDOW_MS)) {
      const title = `s${dropped.size}`;
      dropped.set(title, pool.drop(title, { title }));
      await wait(PAUSE_MS * (0.5 + Math.random()));
    }
    const share = (cpuSecondsOf(supervisor) - fromS) / ((performance.now() - fromMs) / 1000);
    const starts = () => fs.readFileSync(startsPath, "utf8").match(/^s.*$/gm) ?? [];
    await until(() => starts().length >= dropped.size, "all small tasks", { everyMs: 20 });
    const latencies = starts().map((line) => {
      const [title, ns] = line.split(" ");
      return Number(BigInt(ns) - dropped.get(title)) / 1e6;
    });
    return {
      supervisor_percent: 100 * share,
      supervisor_mb: memoryMbOf(supervisor).rss,
      pick_up_median_ms: quantile(latencies, 0.5),
      pick_up_p99_ms: quantile(latencies, 0.99),
    };
  } finally {
    await pool.stop();
  }
}

export const row = {
  name: "streams",
  title: "50 programs that write 1 MB/s each, and small tasks beside them",
  disks: ["ext4"],
  rounds: 3,
  // What others write does not pass through the supervisor in any version.
  isPaired: false,
  contestants: [{ name: "mailchute", needs: ["cc"], run }],
  goals: [
    {
      text: "the supervisor stays below 10 % of a core",
      of: (m) => m("mailchute", "supervisor_percent"),
      atMost: 10,
      unit: "%",
    },
  ],
};
