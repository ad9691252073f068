/**
 * What the plan costs with many nodes: one selection, one status change in memory, one on disk. Prints a table and writes
 * results/roadmap.json.
 *
 *   node bench/roadmap.mjs [--nodes 10000] [--times 200] [--dir DIR]
 *
 * first look    the first selection, with its index, in a plan that was just read
 * selection     plan_next again after one status has changed
 * status        one status change: the new text and what it means
 * status, saved the same and the file replaced (process: no fsync; power: with)
 */
import fs from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parseRoadmap } from "../dist/roadmap/document.js";
import { applyEdits } from "../dist/roadmap/edit.js";
import { Planner } from "../dist/roadmap/next.js";
import { RoadmapFile } from "../dist/roadmap/roadmap-file.js";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "10000" },
    times: { type: "string", default: "200" },
    dir: { type: "string" },
  },
});
const nodes = Number(values.nodes);
const times = Number(values.times);
const base = fs.mkdtempSync(join(values.dir ?? os.tmpdir(), "mailchute-bench-"));

/** Layers of a hundred; each node depends on two of the layer before it. */
function plan() {
  const lines = ["nodes:"];
  for (let i = 0; i < nodes; i++) {
    const on =
      i < 100 ? "" : `, dependencies: [n-${i - 100}, n-${i - (i % 100) - 100 + ((i * 7) % 100)}]`;
    lines.push(
      `  - { id: n-${i}, status: open, title: "Node ${i}", priority: medium${on} }  # as people write it`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function timed(step) {
  const from = performance.now();
  const result = step();
  return [performance.now() - from, result];
}

function quantiles(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  return { median: at(0.5), p99: at(0.99), max: sorted.at(-1), times: samples.length };
}

const text = plan();
const [readMs, read] = timed(() => parseRoadmap(text));
const planner = new Planner();
const [firstMs] = timed(() => planner.next(read.nodes));
let doc = read;
const selection = [];
const status = [];
for (let i = 0; i < times; i++) {
  const [statusMs, next] = timed(() =>
    applyEdits(doc, [{ kind: "status", id: `n-${i}`, status: "in_progress" }]),
  );
  status.push(statusMs);
  doc = next;
  selection.push(timed(() => planner.next(doc.nodes))[0]);
}

const saved = {};
for (const durability of ["process", "power"]) {
  const path = join(base, `${durability}.yaml`);
  fs.writeFileSync(path, text);
  const file = new RoadmapFile(path, { durability });
  let at = await file.read();
  let now = read;
  const samples = [];
  for (let i = 0; i < times; i++) {
    const [ms] = timed(() => {
      now = applyEdits(now, [{ kind: "status", id: `n-${i}`, status: "in_progress" }]);
      const outcome = file.replace(at, now.text);
      if (outcome.kind !== "replaced") throw new Error(`the plan is ${outcome.kind}`);
      at = outcome.file;
    });
    samples.push(ms);
  }
  await file.settle();
  saved[durability] = quantiles(samples);
}

const results = {
  nodes,
  bytes: text.length,
  node: process.version,
  cpus: os.cpus().length,
  read_ms: readMs,
  first_look_ms: firstMs,
  selection_ms: quantiles(selection),
  status_ms: quantiles(status),
  status_saved_process_ms: saved.process,
  status_saved_power_ms: saved.power,
};
const rows = [
  ["selection", results.selection_ms],
  ["status", results.status_ms],
  ["status, saved (process)", saved.process],
  ["status, saved (power)", saved.power],
];
console.log(
  `${nodes} nodes, ${text.length} bytes; read in ${readMs.toFixed(0)} ms, first look ${firstMs.toFixed(1)} ms`,
);
for (const [name, q] of rows)
  console.log(
    `${name.padEnd(26)} median ${q.median.toFixed(2)} ms  p99 ${q.p99.toFixed(2)} ms  (${q.times} times)`,
  );
fs.writeFileSync(
  fileURLToPath(new URL("results/roadmap.json", import.meta.url)),
  `${JSON.stringify(results, null, 2)}\n`,
);
fs.rmSync(base, { recursive: true });

/** What the product promises for 10,000 nodes (ms). */
const GOALS = [
  ["selection", results.selection_ms, 10],
  ["a status change", saved.process, 20],
];
for (const [what, { median }, limitMs] of GOALS) {
  if (median <= limitMs) continue;
  console.error(`${what} takes ${median.toFixed(1)} ms, more than ${limitMs}`);
  process.exitCode = 1;
}
