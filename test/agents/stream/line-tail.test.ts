/** Reading the stream of a program from the file that it writes. */
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LineTail } from "../../../src/agents/stream/line-tail.ts";
import { tempDir } from "../../support/temp-dir.ts";

function newTail(from = 0): { path: string; lines: string[]; tail: LineTail } {
  const path = join(tempDir(), "events.jsonl");
  const lines: string[] = [];
  return { path, lines, tail: new LineTail(path, from, (line) => lines.push(line)) };
}

it("waits for a file that is not there yet", () => {
  const { tail, lines } = newTail();
  expect(tail.read()).toBe(0);
  tail.end();
  expect(lines).toEqual([]);
});

it("tells a line when its end has come, however it was cut", () => {
  const { path, tail, lines } = newTail();
  const bytes = Buffer.from('{"a":"ä€😀"}\n{"b":2}\n');
  for (const byte of bytes) {
    fs.appendFileSync(path, Buffer.from([byte]));
    tail.read();
  }
  expect(lines).toEqual(['{"a":"ä€😀"}', '{"b":2}']);
});

it("takes what a program left without a newline for its last line", () => {
  const { path, tail, lines } = newTail();
  fs.writeFileSync(path, '{"a":1}\n\n{"b"');
  tail.read();
  expect(lines).toEqual(['{"a":1}']);
  tail.end();
  expect(lines).toEqual(['{"a":1}', '{"b"']);
});

it("begins where an earlier run of the same folder ended", () => {
  const { path, lines } = newTail();
  fs.writeFileSync(path, "old\n");
  const tail = new LineTail(path, 4, (line) => lines.push(line));
  fs.appendFileSync(path, "new\n");
  tail.end();
  expect(lines).toEqual(["new"]);
});

it("reads a line of 50 MB whole, and of one above 64 MiB only the beginning", () => {
  const { path, tail, lines } = newTail();
  fs.writeFileSync(path, `${"x".repeat(50_000_000)}\nshort\n${"y".repeat(70_000_000)}\nlast\n`);
  tail.read();
  expect(lines.map((line) => line.length)).toEqual([50_000_000, 5, 65_536, 4]);
  tail.end();
});
