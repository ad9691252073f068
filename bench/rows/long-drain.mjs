/** A drain that lasts: the compilers have done their work early in it. The row `drain` is over before that. */
import { drainBullmq } from "../peers/bullmq.mjs";
import { drainGraphile } from "../peers/graphile.mjs";
import { drainPlainjob } from "../peers/plainjob.mjs";

const COUNT = { full: 100_000, quick: 20_000 };

async function runMailchute(bench) {
  const count = bench.pickLong(COUNT);
  const pool = bench.pool();
  pool.fill(count);
  return pool.drain(count);
}

export const row = {
  name: "long-drain",
  title: "Drain of 100,000, one file each, or as many as --tasks says",
  disks: ["large"],
  isFullOnly: true,
  rounds: 3,
  contestants: [
    { name: "mailchute", run: runMailchute },
    {
      name: "BullMQ, everysec",
      needs: ["redis-server", "bullmq"],
      run: (bench) => drainBullmq(bench.dir(), bench.pickLong(COUNT), "everysec"),
    },
    {
      name: "plainjob",
      needs: ["plainjob", "better-sqlite3"],
      run: (bench) => drainPlainjob(bench.dir(), bench.pickLong(COUNT)),
    },
    {
      name: "graphile-worker, batched",
      needs: ["postgres", "initdb", "graphile-worker"],
      run: (bench) => drainGraphile(bench.dir(), bench.pickLong(COUNT)),
    },
  ],
  goals: [
    {
      text: "≥ 1.0 × BullMQ everysec",
      of: (m) => m("mailchute") / m("BullMQ, everysec"),
      atLeast: 1,
    },
    { text: "≥ 1.0 × plainjob", of: (m) => m("mailchute") / m("plainjob"), atLeast: 1 },
  ],
};
