/** The numbers go on behind `metrics.json` to the journal's end, over rotations, and never become smaller. */
import fs from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/core/settings.ts";
import { stateTree } from "../../../src/core/state-tree.ts";
import { readEventLine } from "../../../src/journal/event-line.ts";
import { EventCounts } from "../../../src/view/metrics/event-counts.ts";
import { MetricsReader } from "../../../src/view/metrics/metrics-reader.ts";
import { readExposition, type Series } from "../../support/exposition.ts";
import { counted, recount, rotateNow } from "../../support/recount.ts";
import { tempDir } from "../../support/temp-dir.ts";

const TASKS = 12;
const MEBI = 1024 * 1024;

function linesOf(n: number): string[] {
  const isFailed = n % 3 === 0;
  return [
    { event: "selected", task_id: `t${n}`, queue_ms: n * 700 },
    { event: "started", task_id: `t${n}` },
    ...(n % 4 === 0 ? [{ event: "retry_scheduled", error: "x", kind: "exit" }] : []),
    ...(isFailed ? [{ event: "failed", kind: "timeout" }] : []),
    {
      event: "completed",
      status: isFailed ? "failed" : "completed",
      duration_ms: n * 90,
      ...(isFailed && { kind: n === 6 ? "dependency_failed" : "timeout" }),
    },
    ...(n === 7 ? ["no record"] : []),
  ].map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`);
}

const JOURNAL = Array.from({ length: TASKS }, (_, n) => linesOf(n)).flat();

function madeTree() {
  const tree = stateTree(tempDir());
  fs.mkdirSync(dirname(tree.events));
  return tree;
}

function readerOf(tree: ReturnType<typeof stateTree>, bytesMax = MEBI): MetricsReader {
  return new MetricsReader(tree, { settings: DEFAULT_SETTINGS, env: {}, bytesMax });
}

function look(reader: MetricsReader): Series {
  return readExposition(reader.next(Date.now()));
}

/** What a supervisor writes that has counted all that is there. */
function writeDocument(tree: ReturnType<typeof stateTree>): void {
  const counts = new EventCounts(undefined);
  let bad = 0;
  for (const line of fs.readFileSync(tree.events, "utf8").split("\n").slice(0, -1)) {
    const { event, record } = readEventLine(line);
    if (event === undefined) bad++;
    counts.add(line, event, record);
  }
  const { ino, size } = fs.statSync(tree.events);
  const document = counts.document(0, { ino, offset: size }, bad);
  fs.writeFileSync(tree.metrics, JSON.stringify(document));
}

test("at each place of the document, and rotated at each place after it, the numbers are those of the journal", () => {
  for (let at = 0; at < JOURNAL.length; at += 2)
    for (const rotated of [at, at + 1, at + 5, JOURNAL.length]) {
      const tree = madeTree();
      fs.writeFileSync(tree.events, JOURNAL.slice(0, at).join(""));
      writeDocument(tree);
      fs.appendFileSync(tree.events, JOURNAL.slice(at, rotated).join(""));
      if (rotated < JOURNAL.length) {
        rotateNow(tree.events, "2026-01-01T00-00-00-000Z");
        fs.writeFileSync(tree.events, JOURNAL.slice(rotated).join(""));
      }
      const reader = readerOf(tree);
      const numbers = look(reader);
      expect(counted(numbers)).toEqual(counted(recount(tree.dir)));
      const lag = JOURNAL.slice(at).join("").length;
      expect(numbers.get("mailchute_journal_lag_bytes")).toBe(lag);
      reader.close();
    }
});

test("one reader follows: lines, documents and rotations come, and no count ever becomes smaller", () => {
  const tree = madeTree();
  const reader = readerOf(tree);
  let before: Record<string, number> = {};
  for (const [n, line] of JOURNAL.entries()) {
    fs.appendFileSync(tree.events, line);
    if (n % 7 === 3 && n < JOURNAL.length / 2) writeDocument(tree);
    const now = counted(look(reader));
    for (const [key, value] of Object.entries(before))
      expect(now[key], key).toBeGreaterThanOrEqual(value);
    before = now;
    if (n % 11 === 10 && n > JOURNAL.length / 2) {
      rotateNow(tree.events, `2026-01-01T00-00-${n}-000Z`);
      fs.writeFileSync(tree.events, "");
    }
  }
  expect(before).toEqual(counted(recount(tree.dir)));
  reader.close();
});

test("a torn last line counts when it is whole", () => {
  const tree = madeTree();
  const [line = ""] = JOURNAL;
  fs.writeFileSync(tree.events, line.slice(0, -5));
  const reader = readerOf(tree);
  expect(counted(look(reader))).toEqual({});
  fs.appendFileSync(tree.events, line.slice(-5));
  expect(counted(look(reader))).toMatchObject({ 'mailchute_events_total{event="selected"}': 1 });
  reader.close();
});

test("what is too much for one look is said, and comes with the next ones", () => {
  const tree = madeTree();
  const line = `${JSON.stringify({ event: "started", pad: "x".repeat(1000) })}\n`;
  const lines = Math.ceil((3.5 * MEBI) / line.length);
  fs.writeFileSync(tree.events, line.repeat(lines));
  const reader = readerOf(tree);
  const left = (): number | undefined => look(reader).get("mailchute_journal_uncounted_bytes");
  expect(left()).toBeGreaterThan(MEBI);
  expect(left()).toBe(0);
  expect(look(reader).get('mailchute_events_total{event="started"}')).toBe(lines);
  reader.close();
});

test("a tree in which nothing ran has its numbers, too, and none that is not known", () => {
  const tree = stateTree(tempDir());
  const reader = readerOf(tree);
  const numbers = look(reader);
  expect(numbers.get("mailchute_up")).toBe(0);
  expect([...numbers.keys()].join("\n")).not.toMatch(/heartbeat|start_time|cost|inbox_tasks/);
  expect(fs.readdirSync(tree.dir)).toEqual([]);
  reader.close();
});
