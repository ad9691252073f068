#!/usr/bin/env node
/**
 * skips.mjs: graphs of many tasks whose root fails. All are skipped, to the last one and each once, also when everything is killed
 * in the middle; after a retry of the root all are done.
 *
 *   --tasks N      in each graph (default 10000)     --shapes A,B   of star, chain, random (default: all)
 *   --limit-ms N   the longest time from the failure to the last skip (default 1000); it is held against the first part only, and
 *                  only a machine that has nothing else to do holds it
 *   --dir DIR      where the trees stand (default: /dev/shm)
 *
 * It ends with 1 when something is lost, doubled, or later than the limit.
 */
import "../../scripts/own-folders.mjs";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { LAUNCHER, Pool } from "../../bench/pool.mjs";

const SEED = 7;
const { values } = parseArgs({
  options: {
    tasks: { type: "string", default: "10000" },
    shapes: { type: "string", default: "star,chain,random" },
    "limit-ms": { type: "string", default: "1000" },
    dir: { type: "string", default: "/dev/shm" },
  },
});
const count = Number(values.tasks);
const limitMs = Number(values["limit-ms"]);
const faults = [];

function check(isGood, text) {
  console.log(`${isGood ? "ok  " : "FAIL"}  ${text}`);
  if (!isGood) faults.push(text);
}

/** The same numbers each time. */
function randoms(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    return state % below;
  };
}

function dependenciesOf(shape) {
  const random = randoms(SEED);
  if (shape === "star") return () => ["root"];
  if (shape === "chain") return (i) => [i === 0 ? "root" : `t${i - 1}`];
  return (i) => [
    ...new Set(i < 10 ? ["root"] : [`t${random(i)}`, `t${random(i)}`].slice(0, 1 + (i % 2))),
  ];
}

function newPool(shape) {
  const dir = fs.mkdtempSync(join(values.dir, "mailchute-skips-"));
  const good = join(dir, "good");
  const pool = new Pool(dir, {
    retry: { max_attempts: 1 },
    handler: `import fs from "node:fs";
export default ({ id }) => {
  if (id === "root" && !fs.existsSync(${JSON.stringify(good)})) throw new Error("not yet");
  return null;
};
`,
  });
  const of = dependenciesOf(shape);
  for (let i = 0; i < count; i++)
    fs.writeFileSync(
      join(pool.inbox, `t${i}.json`),
      JSON.stringify({ prompt: "x", metadata: { dependencies: of(i) } }),
    );
  return Object.assign(pool, { dir, good, failed: join(pool.state, "mailbox", "failed") });
}

const run = (pool, ...args) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [LAUNCHER, ...args, "--state", pool.state],
    { encoding: "utf8", maxBuffer: 2 ** 30 },
  );
  return { status, stdout, stderr };
};
const failedCount = ({ failed }) => (fs.existsSync(failed) ? fs.readdirSync(failed).length : 0);

/** From the failure of the root to the last skip, by the times of the records: what looks at them must not slow it down. */
function spanMs({ failed }) {
  const writtenMs = (name) => fs.statSync(join(failed, name)).mtimeMs;
  return Math.max(...fs.readdirSync(failed).map(writtenMs)) - writtenMs("root_error.json");
}

async function until(is, what) {
  for (const startMs = performance.now(); !is(); await wait(25))
    if (performance.now() - startMs > 600_000) throw new Error(`waited too long for ${what}`);
}

/** Starts it, waits until it knows all tasks, and lets the root fail. */
async function startAndFail(pool) {
  pool.start();
  await until(() => {
    try {
      const path = join(pool.state, "supervisor.json");
      return JSON.parse(fs.readFileSync(path, "utf8")).waiting.blocked === count;
    } catch {
      return false;
    }
  }, "the tasks to be known");
  pool.drop("root", { prompt: "x", max_attempts: 1 });
  await until(() => fs.existsSync(join(pool.failed, "root_error.json")), "the root to fail");
}

function checkAll(pool, shape) {
  const names = fs.readdirSync(pool.failed).filter((name) => name.endsWith("_error.json"));
  check(names.length === count + 1, `${shape}: ${names.length - 1} of ${count} are skipped`);
  const odd = names.filter((name) => {
    const record = JSON.parse(fs.readFileSync(join(pool.failed, name), "utf8"));
    return (
      record.task_id !== "root" && !(record.kind === "dependency_failed" && record.root === "root")
    );
  });
  check(odd.length === 0, `${shape}: each record names the root (${odd.slice(0, 3).join(" ")})`);
  const ended = new Map();
  for (const { event, task_id: id } of pool.events())
    if (event === "completed") ended.set(id, (ended.get(id) ?? 0) + 1);
  const twice = [...ended].filter(([, times]) => times > 1);
  check(twice.length === 0, `${shape}: each has ended once (${twice.slice(0, 3).join(" ")})`);
}

for (const shape of values.shapes.split(",")) {
  const pool = newPool(shape);
  await startAndFail(pool);
  await until(() => failedCount(pool) === count + 1, "the last skip");
  const ms = spanMs(pool);
  check(
    ms <= limitMs,
    `${shape}: ${count} tasks are skipped in ${ms.toFixed(0)} ms (limit ${limitMs})`,
  );
  await pool.stop();
  checkAll(pool, shape);
  const { failed, skipped } = JSON.parse(run(pool, "status", "--json").stdout).counts;
  check(failed.count === 1 && skipped.count === count, `${shape}: status says so`);
  fs.rmSync(pool.dir, { recursive: true });

  const killed = newPool(shape);
  await startAndFail(killed);
  await until(() => failedCount(killed) > count / 2, "the middle");
  killed.child.kill("SIGKILL");
  await new Promise((resolve) => killed.child.once("exit", resolve));
  const then = failedCount(killed) - 1;
  check(then < count, `${shape}: killed when ${then} were skipped`);
  run(killed, "run", "--drain", "--no-live");
  checkAll(killed, shape);
  fs.writeFileSync(killed.good, "");
  const retried = run(killed, "retry", "root");
  check(retried.status === 0, `${shape}: the root is retried`);
  const drained = run(killed, "run", "--drain", "--no-live");
  const done = fs.readdirSync(join(killed.state, "mailbox", "outbox")).length;
  check(
    drained.status === 0 && done === count + 1 && failedCount(killed) === 0,
    `${shape}: after the retry ${done - 1} of ${count} are done`,
  );
  fs.rmSync(killed.dir, { recursive: true });
}
console.log(faults.length === 0 ? "all held" : `${faults.length} not held`);
process.exitCode = faults.length === 0 ? 0 : 1;
