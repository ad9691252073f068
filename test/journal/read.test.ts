/** Reading a journal as others left it: rubbish is skipped and counted. */
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseObject } from "../../src/core/json-object.ts";
import { type ReadCounts, readJournal } from "../../src/journal/read.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const RUBBISH = '{torn\nnull\n[]\n[{}]\n3\ntrue\n"text"\n{}{}\n\x01\nundefined\n';
const RUBBISH_LINES = 10;

function journalOf(content: string | Buffer): string {
  const path = join(tempDir(), "a.jsonl");
  fs.writeFileSync(path, content);
  return path;
}

async function readAll(
  path: string,
  start = 0,
): Promise<{ records: unknown[]; counts: ReadCounts }> {
  const counts: ReadCounts = { records: 0, bad: 0 };
  const records: unknown[] = [];
  for await (const record of readJournal(path, counts, start)) records.push(record);
  return { records, counts };
}

/** Descriptors of this process that are open on `path`. */
function descriptorsOn(path: string): number {
  return fs.readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  }).length;
}

describe("a line", () => {
  it("is a record when it holds one JSON object", () => {
    expect(parseObject('{"a":1}')).toEqual({ a: 1 });
    expect(parseObject(" {} \r")).toEqual({});
    for (const line of ["", "null", "[]", "1", '"{}"', "{", "{}{}"])
      expect(parseObject(line)).toBeUndefined();
  });
});

describe("a journal that is read", () => {
  it("is a regular file: what may have no end is refused", async () => {
    const path = join(tempDir(), "a.jsonl");
    fs.symlinkSync("/dev/zero", path);
    await expect(readAll(path)).rejects.toMatchObject({ code: "EINVAL", path });
    expect(descriptorsOn("/dev/zero")).toBe(0);
  });

  it("gives its records in order, and skips and counts what is none", async () => {
    const path = journalOf(`{"n":1}\n${RUBBISH}{"n":2}\r\n\n  \n{"n":3}\n`);
    expect(await readAll(path)).toEqual({
      records: [{ n: 1 }, { n: 2 }, { n: 3 }],
      counts: { records: 3, bad: RUBBISH_LINES },
    });
  });

  it("has none when it is missing or empty", async () => {
    expect((await readAll("/no/such/journal")).records).toEqual([]);
    expect((await readAll(journalOf(""))).records).toEqual([]);
  });

  it("that cannot be read at all is an error, not an empty journal", async () => {
    await expect(readAll(tempDir())).rejects.toMatchObject({ code: "EINVAL" });
  });

  it("gives the good record that follows a torn tail, and the one behind NUL bytes of a power cut", async () => {
    const path = journalOf('{"n":1}\n{"n":2,"tex\n{"n":3}\n\0\0\0\0{"n":4}\n\0\0\0\n{"n":5}\n');
    expect(await readAll(path)).toEqual({
      records: [1, 3, 4, 5].map((n) => ({ n })),
      counts: { records: 4, bad: 1 },
    });
  });

  it("ends with a line without its newline: a record when it is whole, and counted when it is torn", async () => {
    expect(await readAll(journalOf('{"n":1}\n{"n":2}'))).toEqual({
      records: [{ n: 1 }, { n: 2 }],
      counts: { records: 2, bad: 0 },
    });
    expect(await readAll(journalOf('{"n":1}\n{"n":'))).toEqual({
      records: [{ n: 1 }],
      counts: { records: 1, bad: 1 },
    });
  });

  it("gives whole characters, wherever the pieces of the file are cut", async () => {
    const records = Array.from({ length: 400 }, (_, n) => ({ n, text: "é日😀".repeat(n) }));
    const path = journalOf(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    expect(fs.statSync(path).size).toBeGreaterThan(10 * 64 * 1024);
    expect((await readAll(path)).records).toEqual(records);
  });

  it("can be begun in its middle", async () => {
    const first = '{"n":1}\n';
    expect((await readAll(journalOf(`${first}{"n":2}\n`), first.length)).records).toEqual([
      { n: 2 },
    ]);
  });

  it("skips a line of megabytes without keeping it, and counts it once", async () => {
    const rubbish = "x".repeat(64 * 1024);
    for (const tail of ['\n{"n":2}\n', ""]) {
      const path = journalOf(`{"n":1}\n`);
      for (let i = 0; i < 80; i++) fs.appendFileSync(path, rubbish);
      fs.appendFileSync(path, tail);
      const expected = tail === "" ? [{ n: 1 }] : [{ n: 1 }, { n: 2 }];
      expect(await readAll(path)).toEqual({
        records: expected,
        counts: { records: expected.length, bad: 1 },
      });
    }
    // A file that ends just where the line was given up.
    const path = journalOf(Buffer.alloc(65 * 64 * 1024, 0x78));
    expect(await readAll(path)).toEqual({ records: [], counts: { records: 0, bad: 1 } });
  });

  it("is closed when the reader stops in its middle", async () => {
    const path = journalOf('{"n":1}\n'.repeat(200_000));
    for await (const record of readJournal(path)) {
      expect(record).toEqual({ n: 1 });
      break;
    }
    await waitFor(() => descriptorsOn(path) === 0, {
      what: "the journal to be closed",
      timeoutMs: 3000,
    });
  });
});
