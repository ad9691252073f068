/** One file with very many small tasks. Its peers are those of the row `drain`, in the same run. */
import fs from "node:fs";
import { join } from "node:path";
import { BODY } from "../pool.mjs";
import { runProgram } from "../processes.mjs";

const COUNT = { full: 100_000, quick: 20_000 };
const PEERS = ["BullMQ, everysec", "plainjob", "graphile-worker", "graphile-worker, batched"];

const run = (durability) => async (bench) => {
  const count = bench.pick(COUNT);
  const dir = bench.dir();
  const pool = bench.pool({ durability }, dir);
  const file = join(dir, "tasks.ndjson");
  fs.writeFileSync(file, `${BODY}\n`.repeat(count));
  const args = ["enqueue", "--batch", "--id", "b", "--file", file, "--state", pool.state];
  const enqueue = await runProgram(process.execPath, [pool.launcher, ...args]);
  const { wall_rate } = await pool.drain(1);
  const record = join(pool.state, "mailbox", "outbox", "b_result.json");
  if (!fs.existsSync(record)) throw new Error("the batch has no result");
  const { spanS } = pool.span();
  return { rate: count / spanS, wall_rate: wall_rate * count, enqueue_rate: count / enqueue.wallS };
};

function fastestPeer(lookUp) {
  const rates = PEERS.map((peer) => lookUp("drain", peer)).filter(Number.isFinite);
  return rates.length === 0 ? Number.NaN : Math.max(...rates);
}

export const row = {
  name: "batch",
  title: "A batch file of no-op tasks",
  disks: ["ext4", "tmpfs"],
  chart: "rate",
  contestants: [
    { name: "mailchute", run: run("process") },
    { name: "mailchute, power", run: run("power") },
  ],
  goals: [
    { text: "≥ 100,000 tasks/s", of: (m) => m("mailchute"), atLeast: 100_000 },
    {
      text: "≥ 2 × the fastest peer of the drain",
      of: (m, lookUp) => m("mailchute") / fastestPeer(lookUp),
      atLeast: 2,
    },
    {
      text: "≥ 50,000 tasks/s with `power`",
      of: (m) => m("mailchute, power"),
      atLeast: 50_000,
    },
  ],
};
