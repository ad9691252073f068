/** The charts' numbers against those of `stats`, over rotated journals, while they are read, and while the pool goes on. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { stateTree } from "../../src/core/state-tree.ts";
import {
  type Series,
  SeriesReader,
  SPAN_NAMES,
  SPANS,
  type SpanName,
} from "../../src/view/series.ts";
import { newPool, type Pool } from "../support/pool.ts";

const MINUTE_MS = 60_000;

function task(n: number, endMs: number, failure?: string): string {
  const of = { task_id: `t${n}`, submission: `s${n}`, agent_id: "exec" };
  const lines: object[] = [
    { event: "selected", ...of, t: endMs - 50, attempt: 1, queue_ms: n % 700 },
  ];
  if (failure !== undefined) lines.push({ event: "failed", ...of, t: endMs, kind: failure });
  const status = failure === undefined ? "completed" : "failed";
  lines.push({
    event: "completed",
    ...of,
    t: endMs,
    attempt: 1,
    status,
    duration_ms: (n * 7) % 900,
  });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

function opened(pool: Pool): SeriesReader {
  const series = new SeriesReader(stateTree(pool.state));
  onTestFinished(() => series.close());
  return series;
}

function sums({ points }: Series): {
  completed: number;
  failed: number;
  kinds: Record<string, number>;
} {
  const all = { completed: 0, failed: 0, kinds: {} as Record<string, number> };
  for (const { row, kinds } of points) {
    all.completed += row?.completed ?? 0;
    all.failed += row?.failed ?? 0;
    for (const [kind, count] of Object.entries(kinds))
      all.kinds[kind] = (all.kinds[kind] ?? 0) + count;
  }
  return all;
}

function toEnd(series: SeriesReader, name: SpanName, nowMs: number): Series {
  for (let looks = 0; looks < 100; looks++) {
    const at = series.look(name, nowMs);
    if (at.is_complete) return at;
  }
  throw new Error("the journals have no end");
}

it("counts what `stats` counts, over rotated journals", async () => {
  const pool = newPool();
  const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const journal = join(pool.state, "analytics", "supervisor_lifecycle");
  fs.mkdirSync(join(pool.state, "analytics"));
  const file = (name: string, from: number, to: number): void => {
    let text = "{torn\nnull\n";
    // One task ends each minute, the last one a minute ago; each seventh fails.
    for (let n = to - 1; n >= from; n--)
      text += task(
        n,
        nowMs - (n + 1) * MINUTE_MS,
        n % 7 === 0 ? (n % 2 === 0 ? "exit" : "timeout") : undefined,
      );
    fs.writeFileSync(`${journal}${name}.jsonl`, text);
  };
  const week = 7 * 24 * 60;
  file(".20260101T000000Z", week - 300, week + 300);
  file(".20260102T000000Z", 1500, week - 300);
  file("", 0, 1500);
  const series = opened(pool);
  for (const name of SPAN_NAMES) {
    const at = toEnd(series, name, nowMs);
    const { spanMs, stepMs } = SPANS[name];
    expect(at.points).toHaveLength(spanMs / stepMs);
    expect(at.known_from_ms).toBeNull();
    const first = at.points[0]?.from_ms ?? 0;
    const since = new Date(first).toISOString();
    const { stdout } = await pool.run(["stats", "--since", since, "--json"]);
    const { rows } = JSON.parse(stdout) as { rows: { completed: number; failed: number }[] };
    expect(sums(at)).toMatchObject({ completed: rows[0]?.completed, failed: rows[0]?.failed });
    const { failed, kinds } = sums(at);
    expect((kinds["exit"] ?? 0) + (kinds["timeout"] ?? 0)).toBe(failed);
  }
});

it("follows the journal over a rotation, forgets what is too old, and says when the journals begin", () => {
  const pool = newPool();
  const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const series = opened(pool);
  expect(sums(series.look("1h", nowMs))).toEqual({ completed: 0, failed: 0, kinds: {} });
  fs.mkdirSync(join(pool.state, "analytics"));
  const path = stateTree(pool.state).events;
  fs.writeFileSync(path, task(1, nowMs - 5 * MINUTE_MS));
  expect(sums(toEnd(series, "1h", nowMs)).completed).toBe(1);
  expect(series.look("1h", nowMs).known_from_ms).toBe(nowMs - 5 * MINUTE_MS - 50);
  fs.appendFileSync(path, task(2, nowMs, "exit"));
  expect(sums(series.look("24h", nowMs))).toMatchObject({
    completed: 1,
    failed: 1,
    kinds: { exit: 1 },
  });
  expect(sums(series.look("1h", nowMs + 57 * MINUTE_MS))).toMatchObject({
    completed: 0,
    failed: 1,
  });
  expect(sums(series.look("1h", nowMs + 61 * MINUTE_MS))).toMatchObject({
    completed: 0,
    failed: 0,
  });
  expect(sums(series.look("24h", nowMs + 61 * MINUTE_MS))).toMatchObject({
    completed: 1,
    failed: 1,
  });
});

it("reads a piece in each look, and says that there is more", () => {
  const pool = newPool();
  const nowMs = Date.now();
  fs.mkdirSync(join(pool.state, "analytics"));
  let text = "";
  for (let n = 0; n < 20_000; n++) text += task(n, nowMs - 1000);
  for (let copies = 0; copies < 2; copies++) fs.appendFileSync(stateTree(pool.state).events, text);
  const series = opened(pool);
  expect(series.look("1h", nowMs).is_complete).toBe(false);
  expect(sums(toEnd(series, "1h", nowMs)).completed).toBe(40_000);
});
