/** Drain of many no-op tasks, one file each: the pool, what a user would pick instead, and the bare loops. */
import { runBarePool, runLoop } from "../floors/floors.mjs";
import { drainBullmq } from "../peers/bullmq.mjs";
import { drainGraphile } from "../peers/graphile.mjs";
import { drainPlainjob } from "../peers/plainjob.mjs";

const COUNT = { full: 20_000, quick: 4000 };

async function runMailchute(bench) {
  const pool = bench.pool();
  pool.fill(bench.pick(COUNT));
  return pool.drain(bench.pick(COUNT));
}

const loop = (language, mode) => async (bench) => ({
  rate: (await runLoop(language, bench.dir(), bench.pick(COUNT), mode)).drain,
});

export const row = {
  name: "drain",
  title: "Drain no-op module tasks, one file each",
  disks: ["ext4", "tmpfs"],
  chart: "rate",
  contestants: [
    { name: "mailchute", run: runMailchute },
    { name: "loop of the protocol's calls, Node", run: loop("node", "protocol") },
    { name: "loop of the protocol's calls, C", needs: ["cc"], run: loop("c", "protocol") },
    { name: "minimal loop, Node", run: loop("node", "minimal") },
    { name: "minimal loop, C", needs: ["cc"], run: loop("c", "minimal") },
    {
      name: "bare pool, Node",
      run: async (bench) => ({ rate: await runBarePool(bench.dir(), bench.pick(COUNT)) }),
    },
    {
      name: "BullMQ, everysec",
      needs: ["redis-server", "bullmq"],
      run: (bench) => drainBullmq(bench.dir(), bench.pick(COUNT), "everysec"),
    },
    {
      name: "plainjob",
      needs: ["plainjob", "better-sqlite3"],
      run: (bench) => drainPlainjob(bench.dir(), bench.pick(COUNT)),
    },
    {
      name: "graphile-worker",
      needs: ["postgres", "initdb", "graphile-worker"],
      run: (bench) => drainGraphile(bench.dir(), bench.pick(COUNT) / 4, { isBatched: false }),
    },
    {
      name: "graphile-worker, batched",
      needs: ["postgres", "initdb", "graphile-worker"],
      run: (bench) => drainGraphile(bench.dir(), bench.pick(COUNT)),
    },
  ],
  goals: [
    {
      text: "≥ 0.8 × Node loop of the protocol's calls",
      of: (m) => m("mailchute") / m("loop of the protocol's calls, Node"),
      atLeast: 0.8,
    },
    {
      text: "≥ 0.6 × minimal Node loop",
      of: (m) => m("mailchute") / m("minimal loop, Node"),
      atLeast: 0.6,
    },
  ],
};
