/**
 * From the appearance of a command's file to its effect (not its acknowledgement), under load: workers busy with tasks of
 * 20 ms, and many files waiting.
 *
 * pause        until the last task starts (0 when none starts after the file is there)
 * resume       until the first task starts
 * set-workers  up: until one more task starts beside the one that keeps the only slot busy
 * cancel       until the process of a running program is gone
 */
import fs from "node:fs";
import { join } from "node:path";
import { isGone, until } from "../processes.mjs";
import { quantile } from "../statistics.mjs";

const TIMES = { full: 100, quick: 8 };
const MANY = { full: 100_000, quick: 20_000 };
const TASK_MS = 20;
/** Nothing has started for so long: a pause is in effect (ms). Longer than any task here takes. */
const QUIET_MS = 120;
/** What is run while one turn of all commands is measured. */
const TASKS_PER_TURN = 60;

class Steered {
  constructor(bench) {
    this.dir = bench.dir();
    const handler = `export default () => new Promise((resolve) => setTimeout(resolve, ${TASK_MS}, null));\n`;
    this.pool = bench.pool({ workers: 3, grace_ms: 1000, handler }, this.dir);
    this.sent = 0;
    this.starts = [];
  }

  send(command, args) {
    return this.pool.send(`bench-${String(this.sent++).padStart(6, "0")}`, command, args);
  }

  look() {
    for (const { event, t } of this.pool.follow()) if (event === "started") this.starts.push(t);
    return this.starts;
  }

  lastStart() {
    return this.look().at(-1) ?? 0;
  }

  /** @returns ms from `t` to the first start after it; the journal counts in whole milliseconds */
  async msToStartAfter(t, what) {
    const first = await until(() => this.look().find((start) => start >= Math.floor(t)), what);
    return Math.max(0, first - t);
  }

  quiet(since, what) {
    return until(() => Date.now() - Math.max(this.lastStart(), since) > QUIET_MS, what);
  }

  async pause() {
    const t = this.send("pause");
    await this.quiet(t, "quiet after pause");
    return Math.max(0, this.lastStart() - t);
  }

  resume() {
    return this.msToStartAfter(this.send("resume"), "a start after resume");
  }

  async setWorkers() {
    const t = this.send("set-workers", { workers: 1 });
    await this.quiet(t, "quiet with one slot");
    const up = this.send("set-workers", { workers: 2 });
    return this.msToStartAfter(up, "a start with two slots");
  }

  async cancel(index) {
    const pidFile = join(this.dir, `pid-${index}`);
    const id = `program-${index}`;
    const script = `echo $$ > '${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec sleep 600`;
    this.pool.drop(id, { exec: ["sh", "-c", script], priority: 50 });
    const pid = Number(
      await until(
        () => fs.existsSync(pidFile) && fs.readFileSync(pidFile, "utf8"),
        `start of ${id}`,
      ),
    );
    const t = this.send("cancel", { node: id, final: true });
    await until(() => isGone(pid), `the end of ${id}`);
    return performance.timeOrigin + performance.now() - t;
  }
}

async function run(bench, waiting) {
  const times = bench.pick(TIMES);
  const steered = new Steered(bench);
  const { pool } = steered;
  pool.drop("keeps-busy", { exec: ["sleep", "3600"], priority: 99 });
  pool.fill(waiting + times * TASKS_PER_TURN);
  pool.start();
  const latencies = { pause: [], resume: [], set_workers: [], cancel: [] };
  try {
    await until(() => steered.look().length > 20, "a first few tasks");
    for (let i = 0; i < times; i++) {
      latencies.pause.push(await steered.pause());
      latencies.resume.push(await steered.resume());
    }
    for (let i = 0; i < times; i++) latencies.set_workers.push(await steered.setWorkers());
    steered.send("set-workers", { workers: 3 });
    for (let i = 0; i < times; i++) latencies.cancel.push(await steered.cancel(i));
    const left = fs.readdirSync(pool.inbox).length;
    if (left < 0.9 * waiting) throw new Error(`only ${left} files were waiting at the end`);
  } finally {
    await pool.stop();
  }
  const at = (q) => Object.entries(latencies).map(([name, ms]) => [name, quantile(ms, q)]);
  const worst = (q) => Math.max(...at(q).map(([, ms]) => ms));
  return {
    worst_median_ms: worst(0.5),
    worst_p99_ms: worst(0.99),
    ...Object.fromEntries(at(0.5).map(([name, ms]) => [`${name}_median_ms`, ms])),
    ...Object.fromEntries(at(0.99).map(([name, ms]) => [`${name}_p99_ms`, ms])),
  };
}

const goalsOf = (backlog) => [
  {
    text: `median ≤ 20 ms, ${backlog}`,
    of: (m) => m(`mailchute, ${backlog}`, "worst_median_ms"),
    atMost: 20,
    unit: "ms",
  },
  {
    text: `p99 ≤ 100 ms, ${backlog}`,
    of: (m) => m(`mailchute, ${backlog}`, "worst_p99_ms"),
    atMost: 100,
    unit: "ms",
  },
];

export const row = {
  name: "commands",
  title: "Command to effect: the slowest of pause, resume, set-workers, cancel",
  disks: ["ext4"],
  rounds: 1,
  contestants: [
    { name: "mailchute, 1,000 waiting", run: (bench) => run(bench, 1000) },
    { name: "mailchute, many waiting", run: (bench) => run(bench, bench.pick(MANY)) },
  ],
  goals: [...goalsOf("1,000 waiting"), ...goalsOf("many waiting")],
};
