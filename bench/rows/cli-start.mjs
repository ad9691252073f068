/** How much longer the command line takes than Node itself. */
import { spawnSync } from "node:child_process";
import { median } from "../statistics.mjs";

const TIMES = { full: 20, quick: 8 };

function time(args, times) {
  const samples = Array.from({ length: times }, () => {
    const from = performance.now();
    const { status } = spawnSync(process.execPath, args, { stdio: "ignore" });
    if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}`);
    return performance.now() - from;
  });
  return { start_ms: median(samples) };
}

export const row = {
  name: "cli-start",
  title: "Start of the command line",
  disks: ["ext4"],
  contestants: [
    {
      name: "mailchute status",
      run(bench) {
        const pool = bench.pool();
        pool.fill(10);
        return time([pool.launcher, "status", "--state", pool.state], bench.pick(TIMES));
      },
    },
    { name: "node -e 0", run: (bench) => time(["-e", "0"], bench.pick(TIMES)) },
  ],
  goals: [
    {
      text: "≤ 1.5 × `node -e 0`",
      of: (m) => m("mailchute status", "start_ms") / m("node -e 0", "start_ms"),
      atMost: 1.5,
    },
  ],
};
