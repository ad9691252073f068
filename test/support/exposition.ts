/**
 * A strict reader of Prometheus' text format: each family has one HELP and one TYPE before its samples, all of them together; no
 * series is there twice; buckets grow up to +Inf, which is the count. Written from the format's description, not from our writer.
 */
import { expect } from "vitest";

/** Values by series, as `name{label="value"}`; labels as they stand there. */
export type Series = Map<string, number>;

const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$/;

export function readExposition(text: string): Series {
  expect(text.endsWith("\n")).toBe(true);
  const series: Series = new Map();
  const families = new Set<string>();
  let family = "";
  let type = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === "HELP") {
      expect(families, line).not.toContain(name);
      families.add(name);
      family = name;
      type = "";
      continue;
    }
    if (kind === "TYPE") {
      expect(name, line).toBe(family);
      expect(["counter", "gauge", "histogram"]).toContain(rest);
      type = rest;
      expect(name.endsWith("_total"), line).toBe(type === "counter");
      continue;
    }
    const [, sample = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    expect(type, line).not.toBe("");
    const base = type === "histogram" ? sample.replace(/_(?:bucket|sum|count)$/, "") : sample;
    expect(base, line).toBe(family);
    expect(Number.isFinite(Number(value)), line).toBe(true);
    const key = labels === "" ? sample : `${sample}{${labels}}`;
    expect(series.has(key), line).toBe(false);
    series.set(key, Number(value));
  }
  for (const name of families) checkBuckets(name, series);
  return series;
}

function checkBuckets(name: string, series: Series): void {
  const buckets = [...series].filter(([key]) => key.startsWith(`${name}_bucket{`));
  if (buckets.length === 0) return;
  const bounds = buckets.map(([key]) =>
    Number(/le="([^"]+)"/.exec(key)?.[1]?.replace("+Inf", "Infinity")),
  );
  const counts = buckets.map(([, count]) => count);
  expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
  expect(counts).toEqual([...counts].sort((a, b) => a - b));
  expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY);
  const count = [...series].find(([key]) => key.replace(/\{.*/, "") === `${name}_count`);
  expect(counts.at(-1)).toBe(count?.[1]);
}
