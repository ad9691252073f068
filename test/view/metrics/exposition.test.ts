/** The text that Prometheus gets, with texts of others in its labels, and what the counts behind it take from older documents. */
import { expect, test } from "vitest";
import { readEventLine } from "../../../src/journal/event-line.ts";
import { EventCounts } from "../../../src/view/metrics/event-counts.ts";
import { exposition } from "../../../src/view/metrics/exposition.ts";
import { Histogram } from "../../../src/view/metrics/histogram.ts";
import { readExposition } from "../../support/exposition.ts";

const gauge = (name: string, ...values: string[]) => ({
  name,
  help: "with a \\ and\na second line",
  type: "gauge" as const,
  samples: values.map((gate, value) => ({ labels: { gate }, value })),
});

test("labels carry any text: escaped, cut, and no half of a character", () => {
  const text = exposition(
    [gauge("m_a", 'a"b\\c\nd', `x${"😀".repeat(200)}`, "{}=,# é"), gauge("m_b")],
    {
      tree: 'n"1',
    },
  );
  expect(readExposition(text).size).toBe(3);
  expect(text).toContain('{tree="n\\"1",gate="a\\"b\\\\c\\nd"} 0\n');
  expect(text).toContain(`gate="x${"😀".repeat(49)}"`);
  // Nothing of a family without samples.
  expect(text).not.toContain("m_b");
});

test("a histogram counts up to its bounds, a value that equals one below it, and nothing that is no time", () => {
  const histogram = new Histogram(undefined);
  for (const ms of [0, 10, 11, 14_400_000, 14_400_001, -1, Number.NaN, "7", null])
    histogram.add(ms);
  const series = readExposition(
    exposition([{ name: "m_seconds", help: "h", type: "histogram", of: histogram }]),
  );
  expect(series.get('m_seconds_bucket{le="0.01"}')).toBe(2);
  expect(series.get('m_seconds_bucket{le="0.03"}')).toBe(3);
  expect(series.get('m_seconds_bucket{le="14400"}')).toBe(4);
  expect(series.get("m_seconds_count")).toBe(5);
  expect(series.get("m_seconds_sum")).toBeCloseTo(28_800.022, 6);
});

test.each([
  undefined,
  "x",
  { bounds: [1], counts: [1, 2], sum: 3 },
  { ...new Histogram(undefined).toDocument(), counts: [1] },
  { ...new Histogram(undefined).toDocument(), counts: Array(18).fill(-1) },
])("a histogram begins anew when its document is not ours: %j", (document) => {
  expect(new Histogram(document).cumulative().at(-1)?.count).toBe(0);
});

const add = (counts: EventCounts, members: object): void => {
  const line = JSON.stringify(members);
  const { event, record } = readEventLine(line);
  counts.add(line, event, record);
};

test("what an earlier version counted without kinds has an unknown one", () => {
  const counts = new EventCounts({
    events: { completed: 5, retry_scheduled: 4 },
    tasks: { completed: 2, failed: 3 } as never,
  });
  add(counts, { event: "completed", status: "failed", kind: "exit" });
  add(counts, { event: "retry_scheduled", error: 'no ,"kind":"signal"', kind: "timeout", t: 1 });
  add(counts, { event: "retry_scheduled", error: 'no ,"kind":"signal"' });
  expect(counts.failures).toEqual({ unknown: 3, exit: 1 });
  expect(counts.retries).toEqual({ unknown: 5, timeout: 1 });
});

test("kinds are bounded, also those that a program makes up", () => {
  const counts = new EventCounts(undefined);
  const letters = "abcdefghijklmnopqrstuvwxyz";
  for (const letter of letters + letters.toUpperCase())
    for (const kind of [`k_${letter}`, `l_${letter}`, "__proto__", `${letter}`.repeat(50)])
      add(counts, { event: "completed", status: "failed", kind });
  expect(Object.keys(counts.failures).length).toBeLessThanOrEqual(31);
  const sum = Object.values(counts.failures).reduce((all, one) => all + one, 0);
  expect(sum).toBe(counts.failed);
  expect(counts.failures["other"]).toBeGreaterThan(0);
});

test.each([
  [',"queue_ms":0}', 1, 0],
  [',"queue_ms":1234567}', 1, 1234.567],
  [',"queue_ms":12.5}', 0, 0],
  [',"queue_ms":-5}', 0, 0],
  [',"queue_ms":}', 0, 0],
  [',"other_queue_ms":77}', 0, 0],
  ["}", 0, 0],
])("the wait is read from the end of a line that is not parsed: %s", (end, count, sum) => {
  const counts = new EventCounts(undefined);
  counts.add(`{"event":"selected","task_id":"queue_ms"${end}`, "selected", undefined);
  expect(counts.waits.cumulative().at(-1)?.count).toBe(count);
  expect(counts.waits.sumMs / 1000).toBe(sum);
});
