/** Pages of a log by their place in the file. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findInLog, placeAfter, readLogPage } from "../../src/view/log-page.ts";
import { tempDir } from "../support/temp-dir.ts";

function logWith(text: string | Buffer): string {
  const path = join(tempDir(), "stdout.log");
  fs.writeFileSync(path, text);
  return path;
}

describe("a page of a log", () => {
  it("holds the last lines before a place, with where each begins", () => {
    const path = logWith("one\ntwo\n\nfour\n");
    expect(readLogPage(path, undefined, 2)).toEqual({
      lines: ["", "four"],
      starts: [8, 9],
      to: 14,
      size: 14,
    });
    expect(readLogPage(path, 8, 5).lines).toEqual(["one", "two"]);
    expect(readLogPage(path, 0, 5).lines).toEqual([]);
  });

  it("shows a last line that has no end yet", () => {
    expect(readLogPage(logWith("one\ntw"), undefined, 5).lines).toEqual(["one", "tw"]);
  });

  it("of a file that is missing or empty is empty, and a pipe or link is refused", () => {
    const dir = tempDir();
    expect(readLogPage(join(dir, "none"), undefined, 5).lines).toEqual([]);
    expect(readLogPage(logWith(""), undefined, 5).lines).toEqual([]);
    fs.symlinkSync("/etc/passwd", join(dir, "link"));
    expect(() => readLogPage(join(dir, "link"), undefined, 5)).toThrow(/ELOOP/);
  });

  it("page by page backwards, and line by line on, all lines are seen once", () => {
    const line = fc.stringMatching(/^[a-zä日]{0,40}$/);
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 9 }),
        (lines, rows) => {
          const path = logWith(`${lines.join("\n")}\n`);
          const seen: string[] = [];
          for (let to: number | undefined; to !== 0; ) {
            const page = readLogPage(path, to, rows);
            seen.unshift(...page.lines);
            to = page.starts[0] ?? 0;
          }
          expect(seen).toEqual(lines);
          const on: string[] = [];
          for (let to: number | undefined = 0; to !== undefined; ) {
            to = placeAfter(path, to, 1);
            on.push(...readLogPage(path, to, 1).lines);
          }
          expect(on).toEqual(lines);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("costs the same at the end of a long file, and a line without an end is shown in parts", () => {
    const path = logWith(Buffer.alloc(3_000_000, "x"));
    const page = readLogPage(path, undefined, 5);
    expect(page.lines).toHaveLength(1);
    expect(page.lines[0]).toHaveLength(256 * 1024);
    expect(page.starts[0]).toBe(3_000_000 - 256 * 1024);
    expect(placeAfter(path, 0, 1)).toBe(256 * 1024);
  });
});

it("a search finds the next line with a text, in both directions", () => {
  const path = logWith("a x\nb\nc x\nd\n");
  const isMeant = (line: string): boolean => line.includes("x");
  expect(findInLog(path, isMeant, 0, "on")).toBe(4);
  expect(findInLog(path, isMeant, 4, "on")).toBe(10);
  expect(findInLog(path, isMeant, 10, "on")).toBeUndefined();
  expect(findInLog(path, isMeant, 6, "back")).toBe(4);
  expect(findInLog(path, isMeant, 12, "back")).toBe(10);
});
