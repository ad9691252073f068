/**
 * Preloaded into every process of a soaked pool: says each second, after a collection of garbage, how much memory is in
 * use, in a file of MAILCHUTE_PROBE_DIR with the pid as its name. With MAILCHUTE_PROBE_LEAK it leaks on purpose, or
 * never claims some of the tasks.
 */
import fs from "node:fs";
import { basename, join } from "node:path";
import v8 from "node:v8";
import vm from "node:vm";
import { isMainThread } from "node:worker_threads";

const PERIOD_MS = 1000;
const dir = process.env.MAILCHUTE_PROBE_DIR;

const { renameSync } = fs;
/** As if another had been faster, each time. */
function claimAllBut(from, to) {
  if (/^t-\d*00@.*~ready/.test(basename(String(from))) && String(to).includes("~w-"))
    throw Object.assign(new Error("ENOENT: left alone on purpose"), { code: "ENOENT" });
  renameSync(from, to);
}

const leaked = [];
const LEAKS = {
  descriptors: () => fs.openSync("/dev/null"),
  watches: () => fs.watch(fs.mkdtempSync(join(dir, "watched-"))).unref(),
  memory: () => Array.from({ length: 25_000 }, (_, n) => `${n} ${Math.random()}`),
  files: () => {
    const workers = join(dir, "..", "state", "workers");
    // The first worker makes it.
    if (fs.existsSync(workers)) fs.writeFileSync(join(workers, `${Date.now()}.part`), "");
  },
  tasks: () => {
    fs.renameSync = claimAllBut;
  },
};

if (dir !== undefined && isMainThread) {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc");
  setInterval(() => {
    collect();
    const { rss, heapUsed, external } = process.memoryUsage();
    fs.writeFileSync(join(dir, String(process.pid)), JSON.stringify({ rss, heapUsed, external }));
    const leak = LEAKS[process.env.MAILCHUTE_PROBE_LEAK];
    if (leak !== undefined) leaked.push(leak());
  }, PERIOD_MS).unref();
}
