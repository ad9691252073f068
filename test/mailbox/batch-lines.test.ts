/** Lines of a batch, whatever their length and bytes and wherever the pieces of a read end. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TASK_BYTES_MAX } from "../../src/core/limits.ts";
import { type Line, LineReader } from "../../src/mailbox/submit/batch-lines.ts";
import { tempDir } from "../support/temp-dir.ts";

/** All lines; those that were counted and not given must have been empty. */
function readAll(path: string, takesTail = true): Line[] {
  const reader = new LineReader(path, { takesTail });
  const lines: Line[] = [];
  for (let line = reader.next(); line !== undefined; line = reader.next()) {
    if (line === "later") continue;
    while (lines.length + 1 < line.number)
      lines.push({ number: lines.length + 1, text: "", fault: "" });
    lines.push(line);
  }
  expect(reader.position).toBe(reader.size);
  return lines;
}

describe("a reader of lines", () => {
  test("gives every line once, with its number, and the tail only when it is wanted", () => {
    const path = join(tempDir(), "lines");
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.string({ maxLength: 200 }).map((text) => text.replaceAll("\n", " ")),
            fc.constantFrom("", "é".repeat(40_000), "x".repeat(65_536), "y".repeat(140_000)),
          ),
          { maxLength: 30 },
        ),
        fc.boolean(),
        (texts, isEnded) => {
          // A mark at the very beginning is no part of the first line.
          if (texts[0]?.startsWith("\ufeff") === true) return;
          fs.writeFileSync(path, texts.join("\n") + (isEnded && texts.length > 0 ? "\n" : ""));
          const hasTail = !isEnded && texts.length > 0 && texts.at(-1) !== "";
          const wanted = isEnded || hasTail ? texts : texts.slice(0, -1);
          expect(readAll(path).map((line) => line.text)).toEqual(wanted);
          expect(readAll(path).map((line) => line.number)).toEqual(wanted.map((_, i) => i + 1));
          const whole = hasTail ? texts.slice(0, -1) : wanted;
          expect(readAll(path, false).map((line) => line.text)).toEqual(whole);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("tells lines that cannot be text from their neighbours", () => {
    const path = join(tempDir(), "lines");
    const long = Buffer.alloc(TASK_BYTES_MAX + 300_000, "z");
    const line = (bytes: Buffer | string): Buffer =>
      Buffer.concat([Buffer.from(bytes), Buffer.from("\n")]);
    fs.writeFileSync(
      path,
      Buffer.concat([
        Buffer.from([0xef, 0xbb, 0xbf]),
        line('{"a":1}'),
        line(Buffer.from([0xff, 0xfe, 0x41])),
        line("between"),
        line(long),
        line("after"),
        Buffer.from("tail"),
      ]),
    );
    const lines = readAll(path);
    expect(lines.map(({ text }) => text)).toEqual([
      '{"a":1}',
      undefined,
      "between",
      undefined,
      "after",
      "tail",
    ]);
    expect(lines[1]?.fault).toContain("UTF-8");
    expect(lines[3]?.fault).toContain(`longer than ${TASK_BYTES_MAX}`);
  });

  test("reads one piece a call, whatever stands in it", () => {
    const path = join(tempDir(), "lines");
    const pieces = 20;
    for (const text of ["\n", "x", "\u0000", '{"a":1}\n']) {
      fs.writeFileSync(path, text.repeat((pieces * 65_536) / text.length));
      const reader = new LineReader(path);
      let before = 0;
      let most = 0;
      for (let line = reader.next(); line !== undefined; line = reader.next()) {
        most = Math.max(most, reader.position - before);
        before = reader.position;
      }
      expect(most).toBeLessThanOrEqual(65_536);
      expect(before).toBe(fs.statSync(path).size);
    }
  });

  test("refuses what is no file", () => {
    const dir = tempDir();
    expect(() => new LineReader(dir)).toThrow("not a regular file");
    fs.symlinkSync("/etc/passwd", join(dir, "link"));
    expect(() => new LineReader(join(dir, "link"))).toThrow("ELOOP");
  });
});

test("a batch that fits into one piece shows how far its lines were taken, not how far it was read", () => {
  const path = join(tempDir(), "lines.ndjson");
  const lines = Array.from({ length: 100 }, (_, n) => JSON.stringify({ payload: n % 10 }));
  fs.writeFileSync(path, `${lines.join("\n")}\n`);
  const reader = new LineReader(path);
  const taken: number[] = [];
  for (let line = reader.next(); line !== undefined; line = reader.next())
    if (line !== "later") taken.push(reader.taken / reader.size);
  expect(taken).toHaveLength(100);
  for (const [n, part] of taken.entries()) expect(part).toBeCloseTo((n + 1) / 100, 1);
  expect(reader.taken).toBe(reader.size);
});
