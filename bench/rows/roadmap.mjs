/**
 * What a plan of 10,000 nodes costs: the choice of what runs next after a status has changed, and a status change, in memory
 * and with the file replaced.
 */
import fs from "node:fs";
import { join } from "node:path";
import { createJiti } from "jiti";
import { median, quantile } from "../statistics.mjs";

// From the sources: what is built has no files of its own for these.
const jiti = createJiti(import.meta.url, { fsCache: false });
const { parseRoadmap } = await jiti.import("../../src/parts/plan/read/document.ts");
const { applyEdits } = await jiti.import("../../src/parts/plan/edit/edit.ts");
const { Planner } = await jiti.import("../../src/parts/plan/rules/next.ts");
const { RoadmapFile } = await jiti.import("../../src/parts/plan/file/roadmap-file.ts");

const NODES = 10_000;
const LAYER = 100;
const TIMES = { full: 200, quick: 50 };

/** Layers of a hundred; each node depends on two of the layer before it. */
function plan() {
  const lines = ["nodes:"];
  for (let i = 0; i < NODES; i++) {
    const above = i - (i % LAYER) - LAYER;
    const on = i < LAYER ? "" : `, dependencies: [n-${i - LAYER}, n-${above + ((i * 7) % LAYER)}]`;
    lines.push(
      `  - { id: n-${i}, status: open, title: "Node ${i}", priority: medium${on} }  # as people write it`,
    );
  }
  return `${lines.join("\n")}\n`;
}

const inProgress = (i) => [{ kind: "status", id: `n-${i}`, status: "in_progress" }];

function timeMs(step) {
  const from = performance.now();
  step();
  return performance.now() - from;
}

async function run(bench) {
  const times = bench.pick(TIMES);
  const text = plan();
  const read = parseRoadmap(text);
  const planner = new Planner();
  planner.next(read.nodes);
  let doc = read;
  const selection = [];
  const status = [];
  for (let i = 0; i < times; i++) {
    status.push(timeMs(() => (doc = applyEdits(doc, inProgress(i)))));
    selection.push(timeMs(() => planner.next(doc.nodes)));
  }
  return {
    selection_ms: median(selection),
    selection_p99_ms: quantile(selection, 0.99),
    status_ms: median(status),
    status_saved_ms: await save(bench, read, text, "process", times),
    status_saved_power_ms: await save(bench, read, text, "power", times),
  };
}

async function save(bench, read, text, durability, times) {
  const path = join(bench.dir(), "roadmap.yaml");
  fs.writeFileSync(path, text);
  const file = new RoadmapFile(path, { durability });
  let at = await file.read();
  let doc = read;
  const samples = [];
  for (let i = 0; i < times; i++) {
    samples.push(
      timeMs(() => {
        doc = applyEdits(doc, inProgress(i));
        const outcome = file.replace(at, doc.text);
        if (outcome.kind !== "replaced") throw new Error(`the plan is ${outcome.kind}`);
        at = outcome.file;
      }),
    );
  }
  await file.replaced.settle();
  return median(samples);
}

export const row = {
  name: "roadmap",
  title: "A roadmap of 10,000 nodes",
  disks: ["ext4"],
  // It measures the sources in the process of the benchmark.
  isPaired: false,
  contestants: [{ name: "mailchute", run }],
  goals: [
    {
      text: "selection ≤ 10 ms",
      of: (m) => m("mailchute", "selection_ms"),
      atMost: 10,
      unit: "ms",
    },
    {
      text: "a status change ≤ 20 ms",
      of: (m) => m("mailchute", "status_saved_ms"),
      atMost: 20,
      unit: "ms",
    },
  ],
};
