/** Times in the past, as people type them. */
import { describe, expect, it } from "vitest";
import { readPast } from "../../src/cli/shell/past-time.ts";

const NOW = new Date(2026, 2, 10, 7, 30).getTime();

describe("readPast", () => {
  it.each([
    ["22:00", new Date(2026, 2, 9, 22, 0)],
    ["07:00", new Date(2026, 2, 10, 7, 0)],
    ["7:30", new Date(2026, 2, 10, 7, 30)],
    ["7:31", new Date(2026, 2, 9, 7, 31)],
    ["12h", new Date(NOW - 12 * 3_600_000)],
    ["90m", new Date(NOW - 90 * 60_000)],
    ["2026-03-01T22:00", new Date(2026, 2, 1, 22, 0)],
    ["2026-03-01T22:00:00Z", new Date(Date.UTC(2026, 2, 1, 22, 0))],
  ])("reads %s", (text, expected) => {
    expect(new Date(readPast(text, NOW, "--since"))).toEqual(expected);
  });

  it.each(["", "25:00", "7:60", "yesterday", "2026-13-01", "-3h"])("refuses %j", (text) => {
    expect(() => readPast(text, NOW, "--since")).toThrow(/--since wants a time/);
  });
});
