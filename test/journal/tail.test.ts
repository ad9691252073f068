/** A tail gives each record of a journal once, also of one that others rotate, cut or fill with rubbish. */
import fs from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rotate } from "../../src/journal/journal.ts";
import { JournalTail } from "../../src/journal/tail.ts";
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
