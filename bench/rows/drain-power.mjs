/** The same drain when a power cut may lose nothing. */
import { runBarePool } from "../floors/floors.mjs";
import { drainBullmq } from "../peers/bullmq.mjs";
import { drainGraphile } from "../peers/graphile.mjs";

const COUNT = { full: 20_000, quick: 2000 };

export const row = {
  name: "drain-power",
  title: "The same with durability `power`",
  disks: ["ext4"],
  chart: "rate",
  contestants: [
    {
      name: "mailchute, power",
      run(bench) {
        const pool = bench.pool({ durability: "power", workers: 256 });
        pool.fill(bench.pick(COUNT));
        return pool.drain(bench.pick(COUNT));
      },
    },
    {
      name: "bare pool, Node, with the same syncs",
      run: async (bench) => ({
        rate: await runBarePool(bench.dir(), bench.pick(COUNT), "power"),
      }),
    },
    {
      name: "BullMQ, always",
      needs: ["redis-server", "bullmq"],
      run: (bench) => drainBullmq(bench.dir(), bench.pick(COUNT), "always"),
    },
    {
      name: "graphile-worker, batched, synchronous_commit on",
      needs: ["postgres", "initdb", "graphile-worker"],
      run: (bench) => drainGraphile(bench.dir(), bench.pick(COUNT), { synchronousCommit: "on" }),
    },
  ],
  goals: [
    {
      text: "≥ 1.2 × BullMQ with appendfsync always",
      of: (m) => m("mailchute, power") / m("BullMQ, always"),
      atLeast: 1.2,
    },
  ],
};
