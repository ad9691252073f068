/** `metrics.json`: what it counts, and what it takes over from the one that is there. */

import { EventEmitter } from "node:events";
import fs from "node:fs";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { stateTree } from "../../../src/core/state-tree.ts";
import { Metrics } from "../../../src/parts/metrics/metrics.ts";
import type { FactMap } from "../../../src/supervisor/environment/facts.ts";
import { JournalReader } from "../../../src/supervisor/environment/journal-reader.ts";
import type { MetricsDocument } from "../../../src/view/metrics/event-counts.ts";
import { tempDir } from "../../support/temp-dir.ts";

const completed = (ms: number): string =>
  `${JSON.stringify({ event: "completed", task_id: "t", status: "completed", duration_ms: ms })}\n`;

function count(dir: string): MetricsDocument {
  const tree = stateTree(dir);
  const facts = new EventEmitter<FactMap>();
  const journal = new JournalReader({ tree, facts, alerts: {} as never });
  const metrics = new Metrics(tree.metrics);
  journal.startAt(metrics.place);
  facts.on("journal:line", (line, event, record) => metrics.add(line, event, record));
  journal.readAll();
  metrics.write(0, journal.place, journal.badCount);
  journal.close();
  return JSON.parse(fs.readFileSync(tree.metrics, "utf8")) as MetricsDocument;
}

function madeTree(): string {
  const dir = tempDir();
  fs.mkdirSync(dirname(stateTree(dir).events));
  return dir;
}

it("shows percentiles that a run can have taken, over restarts, too", () => {
  const dir = madeTree();
  const events = stateTree(dir).events;
  fs.writeFileSync(events, completed(21).repeat(19) + completed(518));
  const first = count(dir).duration_ms;
  expect(first.p50).toBeCloseTo(21, 0);
  expect(first.p95).toBeCloseTo(21, 0);
  fs.appendFileSync(events, completed(518).repeat(20));
  const { p50, p95, max } = count(dir).duration_ms;
  expect(p50).toBeGreaterThan(500);
  expect(p95).toBeLessThanOrEqual(518);
  expect(max).toBe(518);
});

it("goes on with the counts of a version that kept powers of two, and begins its percentiles anew", () => {
  const dir = madeTree();
  const old = {
    events: { completed: 4 },
    tasks: { completed: 3, failed: 1 },
    duration_ms: { count: 4, sum: 400, max: 200, p50: 128, p95: 256 },
    duration_histogram: { 128: 3, 256: 1 },
    journal: { ino: 0, offset: 0, bad_lines: 2 },
  };
  fs.writeFileSync(stateTree(dir).metrics, JSON.stringify(old));
  fs.writeFileSync(stateTree(dir).events, "");
  expect(count(dir)).toMatchObject({ duration_ms: { count: 4, sum: 400, p50: null, p95: null } });
  fs.writeFileSync(stateTree(dir).events, completed(10));
  const document = count(dir);
  expect(document.tasks).toMatchObject({ completed: 4, failed: 1 });
  expect(document.duration_ms).toMatchObject({ count: 5, sum: 410, max: 200 });
  expect(document.duration_ms.p50).toBeCloseTo(10, 0);
  expect(document).not.toHaveProperty("duration_histogram");
});
