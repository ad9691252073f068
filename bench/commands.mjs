/**
 * How long a command takes from the appearance of its file to its effect (not its acknowledgement), under load: a worker
 * busy and 10,000 files waiting. Prints a table and a histogram, and writes both to results/commands.json.
 *
 *   node bench/commands.mjs [--times 200] [--waiting 10000] [--dir DIR]
 *
 * pause        until the last task starts (0 when none starts after the file is there)
 * resume       until the first task starts
 * set-workers  up: until one more task starts beside the one that keeps the only slot busy
 * cancel       until the process of a running program is gone
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    times: { type: "string", default: "200" },
    waiting: { type: "string", default: "10000" },
    dir: { type: "string" },
  },
});
const times = Number(values.times);
const waiting = Number(values.waiting);
const base = fs.mkdtempSync(join(values.dir ?? os.tmpdir(), "mailchute-bench-"));
const state = join(base, "state");
const inbox = join(state, "mailbox", "inbox");
const eventsPath = join(state, "analytics", "supervisor_lifecycle.jsonl");
const launcher = fileURLToPath(new URL("../bin/mailchute.js", import.meta.url));
/** Nothing has started for so long: a pause is in effect (ms). Longer than any task here takes. */
const QUIET_MS = 120;
const TASK_MS = 20;

/** Events as they are written, read again and again from where the last look ended. */
class Events {
  offset = 0;
  rest = "";
  started = [];
  look() {
    const fd = fs.openSync(eventsPath, "r");
    const { size } = fs.fstatSync(fd);
    const buffer = Buffer.alloc(size - this.offset);
    fs.readSync(fd, buffer, 0, buffer.length, this.offset);
    fs.closeSync(fd);
    this.offset = size;
    const lines = (this.rest + buffer.toString("utf8")).split("\n");
    this.rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('{"event":"started"')) continue;
      const { t, task_id } = JSON.parse(line);
      this.started.push({ t, id: task_id });
    }
    return this.started;
  }
}

const events = new Events();
let count = 0;

/** Drops a command as any program would. @returns epoch ms at which its file appeared */
function send(command, args) {
  const name = `bench-${String(count++).padStart(6, "0")}`;
  const staged = join(base, name);
  fs.writeFileSync(staged, JSON.stringify({ command, args }));
  const t = performance.timeOrigin + performance.now();
  fs.renameSync(staged, join(state, "control", "inbox", `${name}.json`));
  return t;
}

async function until(condition, what, limitMs = 10_000) {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = condition();
    if (answer) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms for ${what}`);
    await wait(1);
  }
}

const firstStartAfter = (t) => () => events.look().find((event) => event.t >= Math.floor(t));
const lastStart = () => events.look().at(-1)?.t ?? 0;

async function pauseAndResume(pauses, resumes) {
  const pausedAt = send("pause");
  await until(() => Date.now() - Math.max(lastStart(), pausedAt) > QUIET_MS, "quiet after pause");
  pauses.push(Math.max(0, lastStart() - pausedAt));
  const resumedAt = send("resume");
  const first = await until(firstStartAfter(resumedAt), "a start after resume");
  resumes.push(Math.max(0, first.t - resumedAt));
}

async function oneMoreWorker(latencies) {
  send("set-workers", { workers: 1 });
  await until(() => Date.now() - lastStart() > QUIET_MS, "quiet with one worker");
  const t = send("set-workers", { workers: 2 });
  const first = await until(firstStartAfter(t), "a start with two workers");
  latencies.push(Math.max(0, first.t - t));
}

async function cancelProgram(latencies, index) {
  const pidFile = join(base, `pid-${index}`);
  const id = `program-${index}`;
  drop(id, {
    exec: [
      "sh",
      "-c",
      `echo $$ > '${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec sleep 600`,
    ],
    priority: 50,
  });
  const pid = Number(
    await until(
      () => fs.existsSync(pidFile) && fs.readFileSync(pidFile, "utf8"),
      `the start of ${id}`,
    ),
  );
  const t = send("cancel", { node: id, final: true });
  await until(() => isGone(pid), `the end of ${id}`);
  latencies.push(performance.timeOrigin + performance.now() - t);
}

function isGone(pid) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return true;
  }
}

function drop(id, task) {
  const staged = join(base, `${id}.json`);
  fs.writeFileSync(staged, JSON.stringify(task));
  fs.renameSync(staged, join(inbox, `${id}.json`));
}

function quantile(sorted, q) {
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)];
}

function histogram(latencies) {
  const bounds = [1, 2, 5, 10, 20, 50, 100, 250, Infinity];
  return bounds.map((to, index) => ({
    upToMs: to,
    count: latencies.filter((ms) => ms <= to && ms > (bounds[index - 1] ?? -1)).length,
  }));
}

function show(name, latencies) {
  const sorted = latencies.toSorted((a, b) => a - b);
  const row = {
    command: name,
    times: sorted.length,
    median_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    max_ms: sorted.at(-1),
    histogram: histogram(sorted),
  };
  const ms = (value) => value.toFixed(1).padStart(7);
  console.log(
    `${name.padEnd(12)} ${String(row.times).padStart(4)} times   median ${ms(row.median_ms)} ms   p99 ${ms(row.p99_ms)} ms   max ${ms(row.max_ms)} ms`,
  );
  for (const { upToMs, count: n } of row.histogram) {
    if (n > 0)
      console.log(
        `  ≤ ${String(upToMs).padStart(8)} ms ${String(n).padStart(4)} ${"#".repeat(Math.ceil((50 * n) / sorted.length))}`,
      );
  }
  return row;
}

fs.mkdirSync(inbox, { recursive: true, mode: 0o700 });
const handler = join(base, "wait.mjs");
fs.writeFileSync(
  handler,
  `export default () => new Promise((resolve) => setTimeout(resolve, ${TASK_MS}, null));\n`,
);
fs.writeFileSync(
  join(state, "config.yaml"),
  `durability: process\ngrace_ms: 1000\nagents:\n  - {name: wait, kind: module, module: ${handler}, default: true}\n`,
);
const body = JSON.stringify({ prompt: "x".repeat(560), created_at: 1 });
for (let i = 0; i < waiting + times * 60; i++) fs.writeFileSync(join(inbox, `w${i}.json`), body);
drop("keeps-busy", { exec: ["sleep", "3600"], priority: 99 });

const supervisor = spawn(
  process.execPath,
  [launcher, "run", "--state", state, "--workers", "3", "--processes", "2", "--no-live"],
  { stdio: ["ignore", "ignore", "inherit"] },
);
try {
  await until(() => fs.existsSync(eventsPath) && events.look().length > 20, "the pool", 60_000);
  const latencies = { pause: [], resume: [], "set-workers": [], cancel: [] };
  for (let i = 0; i < times; i++) await pauseAndResume(latencies.pause, latencies.resume);
  for (let i = 0; i < times; i++) await oneMoreWorker(latencies["set-workers"]);
  send("set-workers", { workers: 3 });
  for (let i = 0; i < times; i++) await cancelProgram(latencies.cancel, i);
  console.log(
    `${os.cpus()[0]?.model}, ${os.cpus().length} cores, Node ${process.versions.node}; ${fs.readdirSync(inbox).length} files still waiting at the end`,
  );
  const rows = Object.entries(latencies).map(([name, list]) => show(name, list));
  const results = fileURLToPath(new URL("results/commands.json", import.meta.url));
  fs.writeFileSync(
    results,
    `${JSON.stringify({ at: new Date().toISOString(), node: process.versions.node, cores: os.cpus().length, rows }, null, 2)}\n`,
  );
  const isGood = rows.every((row) => row.median_ms <= 50 && row.p99_ms <= 250);
  console.log(
    isGood ? "goal met: median ≤ 50 ms, p99 ≤ 250 ms" : "goal missed: median ≤ 50 ms, p99 ≤ 250 ms",
  );
  process.exitCode = isGood ? 0 : 1;
} finally {
  supervisor.kill("SIGTERM");
  await new Promise((resolve) => supervisor.once("exit", resolve));
  fs.rmSync(base, { recursive: true, force: true });
}
