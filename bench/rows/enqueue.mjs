/** Submitting many tasks from a file of lines, one file per task. */
import fs from "node:fs";
import { join } from "node:path";
import { runBareEnqueue, runLoop } from "../floors/floors.mjs";
import { drainBullmq } from "../peers/bullmq.mjs";
import { drainGraphile } from "../peers/graphile.mjs";
import { drainPlainjob } from "../peers/plainjob.mjs";
import { PROMPT } from "../pool.mjs";
import { runProgram } from "../processes.mjs";

const COUNT = { full: 20_000, quick: 4000 };

async function runMailchute(bench) {
  const count = bench.pick(COUNT);
  const dir = bench.dir();
  const pool = bench.pool({}, dir);
  const args = [pool.launcher, "enqueue", "--file", writeTasks(dir, count), "--state", pool.state];
  const { wallS } = await runProgram(process.execPath, args);
  return { rate: count / spanOf(pool.inbox, count), wall_rate: count / wallS };
}

/** @returns the file */
function writeTasks(dir, count) {
  const file = join(dir, "tasks.ndjson");
  const lines = Array.from({ length: count }, (_, i) =>
    JSON.stringify({ id: `t${i}`, prompt: PROMPT }),
  );
  fs.writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

/** From the birth of the first file to the last change of any: the last unlink of a staged name (s). */
function spanOf(inbox, count) {
  const names = fs.readdirSync(inbox);
  if (names.length !== count) throw new Error(`${names.length} of ${count} tasks are in the inbox`);
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  for (const name of names) {
    const { birthtimeMs, mtimeMs, ctimeMs } = fs.statSync(join(inbox, name));
    firstMs = Math.min(firstMs, birthtimeMs > 0 ? birthtimeMs : mtimeMs);
    lastMs = Math.max(lastMs, ctimeMs);
  }
  return (lastMs - firstMs) / 1000;
}

async function runBare(bench) {
  const count = bench.pick(COUNT);
  const dir = bench.dir();
  return { rate: await runBareEnqueue(dir, writeTasks(dir, count), count) };
}

const loop = (language) => async (bench) => ({
  rate: (await runLoop(language, bench.dir(), bench.pick(COUNT), "submit")).submit,
});

export const row = {
  name: "enqueue",
  title: "Enqueue from NDJSON, one file per task",
  disks: ["ext4", "tmpfs"],
  chart: "rate",
  contestants: [
    { name: "mailchute", run: runMailchute },
    { name: "loop of submits, Node", run: loop("node") },
    { name: "loop of submits, C", needs: ["cc"], run: loop("c") },
    { name: "bare enqueue, Node", run: runBare },
    {
      name: "BullMQ addBulk, everysec",
      needs: ["redis-server", "bullmq"],
      run: (bench) => drainBullmq(bench.dir(), bench.pick(COUNT), "everysec", { addsOnly: true }),
    },
    {
      name: "plainjob addMany",
      needs: ["plainjob", "better-sqlite3"],
      run: (bench) => drainPlainjob(bench.dir(), bench.pick(COUNT), true),
    },
    {
      name: "graphile-worker addJobs",
      needs: ["postgres", "initdb", "graphile-worker"],
      run: (bench) => drainGraphile(bench.dir(), bench.pick(COUNT), { addsOnly: true }),
    },
  ],
  goals: [
    {
      text: "≥ 0.8 × Node loop of submits",
      of: (m) => m("mailchute") / m("loop of submits, Node"),
      atLeast: 0.8,
    },
    {
      text: "≥ 1.0 × BullMQ addBulk",
      of: (m) => m("mailchute") / m("BullMQ addBulk, everysec"),
      atLeast: 1,
    },
  ],
};
