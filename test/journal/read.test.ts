/** Reading a journal as others left it: rubbish is skipped and counted, and a tail gives each record once. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseObject } from "../../src/core/json-object.ts";
import { rotate } from "../../src/journal/journal.ts";
import { JournalTail, type ReadCounts, readJournal } from "../../src/journal/read.ts";
import { seededRandom } from "../support/seeded-random.ts";
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

describe("a tail", () => {
  it("gives each record once, as soon as its line is whole", () => {
    const path = journalOf("");
    const tail = new JournalTail(path);
    expect(tail.next()).toEqual([]);
    fs.appendFileSync(path, '{"n":1}\n{"n":2}\n{"n":');
    expect(tail.next()).toEqual([{ n: 1 }, { n: 2 }]);
    expect(tail.next()).toEqual([]);
    fs.appendFileSync(path, '3,"text":"é');
    expect(tail.next()).toEqual([]);
    fs.appendFileSync(path, '"}\n');
    expect(tail.next()).toEqual([{ n: 3, text: "é" }]);
    expect(tail.counts).toEqual({ records: 3, bad: 0 });
  });

  it("gives what a file grows by, however the writes are cut", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = seededRandom(seed);
        const dir = fs.mkdtempSync(join(fs.realpathSync("/tmp"), "mailchute-tail-"));
        try {
          const path = join(dir, "a.jsonl");
          const records = Array.from({ length: random.below(40) }, (_, n) => ({
            n,
            text: "é日".repeat(random.below(30)),
          }));
          const bytes = Buffer.from(
            records.map((record) => `${JSON.stringify(record)}\n`).join(""),
          );
          const tail = new JournalTail(path);
          const seen: unknown[] = [];
          for (let at = 0; at < bytes.length; ) {
            const to = at + 1 + random.below(200);
            fs.appendFileSync(path, bytes.subarray(at, to));
            at = to;
            seen.push(...tail.next(512 + random.below(2000)));
          }
          for (let more = tail.next(); more.length > 0; more = tail.next()) seen.push(...more);
          expect(seen).toEqual(records);
          expect(tail.counts).toEqual({ records: records.length, bad: 0 });
        } finally {
          fs.rmSync(dir, { recursive: true });
        }
      }),
      { numRuns: 40 },
    );
  });

  it("skips and counts torn lines and rubbish", () => {
    const path = journalOf(`{"n":1}\n{"torn":\n${RUBBISH}\n\0\0{"n":2}\n`);
    const tail = new JournalTail(path);
    expect(tail.next()).toEqual([{ n: 1 }, { n: 2 }]);
    expect(tail.counts).toEqual({ records: 2, bad: RUBBISH_LINES + 1 });
  });

  it("gives what was written between its last look and a rotation, then the new file once nobody writes the old one", async () => {
    const path = journalOf('{"n":1}\n');
    const tail = new JournalTail(path);
    const records = tail.next();
    fs.appendFileSync(path, '{"n":2}\n');
    const old = fs.openSync(path, "a");
    rotate(path, 0, 0);
    // Larger than the old one already.
    fs.writeFileSync(path, '{"n":4}\n{"n":5}\n{"n":6}\n{"n":7}\n');
    records.push(...tail.next());
    // A writer that has not noticed the rotation yet.
    fs.writeSync(old, '{"n":3}\n');
    fs.closeSync(old);
    await waitFor(() => records.push(...tail.next()) >= 7, { what: "the new file" });
    expect(records).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => ({ n })));
    expect(tail.next()).toEqual([]);
    tail.close();
  });

  it("begins anew when the file was made shorter", () => {
    const path = journalOf('{"n":1}\n{"n":2}\n');
    const tail = new JournalTail(path);
    tail.next();
    fs.truncateSync(path);
    fs.appendFileSync(path, '{"n":3}\n');
    expect(tail.next()).toEqual([{ n: 3 }]);
  });

  it("can be taken up where another one stopped", () => {
    const path = journalOf('{"n":1}\n');
    const first = new JournalTail(path);
    first.next();
    fs.appendFileSync(path, '{"n":2}\n');
    expect(new JournalTail(path, first.offset, first.ino).next()).toEqual([{ n: 2 }]);
  });

  it("has nothing to say about a file that is not there yet, or gone", () => {
    const path = join(tempDir(), "a.jsonl");
    const tail = new JournalTail(path);
    expect(tail.next()).toEqual([]);
    fs.writeFileSync(path, '{"n":1}\n');
    expect(tail.next()).toEqual([{ n: 1 }]);
    fs.rmSync(path);
    expect(tail.next()).toEqual([]);
  });

  it("gets past a line that is longer than what it reads at once, and takes no part of it for a record", () => {
    for (const rubbish of ["x".repeat(10_000), `${"x".repeat(1000)}{"n":9}`]) {
      const path = journalOf(`{"n":1}\n${rubbish}\n{"n":2}\n`);
      const tail = new JournalTail(path);
      const seen: unknown[] = [];
      for (let call = 0; call < 40; call++) seen.push(...tail.next(1000));
      expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
      expect(tail.counts).toEqual({ records: 2, bad: 1 });
    }
  });
});
