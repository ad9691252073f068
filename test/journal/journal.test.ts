/** Appending: no torn line eats a good one, several writers lose nothing, and neither rotation nor a full disk stops anyone. */
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseObject } from "../../src/core/json-object.ts";
import { JOURNAL_BUFFER_BYTES_MAX, JOURNAL_RECORD_BYTES_MAX } from "../../src/core/limits.ts";
import { Journal, rotate } from "../../src/journal/journal.ts";
import { type Program, startProgram } from "../support/programs.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

/** How long another writer adds to its line (ms). */
const GROWS_MS = 2000;

function linesOf(path: string): string[] {
  const text = fs.readFileSync(path, "utf8");
  return text.split("\n").slice(0, -1);
}

/** The records of a file, and how many of its lines are none. */
function readAll(path: string): { records: Record<string, unknown>[]; bad: number } {
  const parsed = fs
    .readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map(parseObject);
  return {
    records: parsed.filter((record) => record !== undefined),
    bad: parsed.filter((record) => record === undefined).length,
  };
}

function openJournal(path = join(tempDir(), "a.jsonl")): Journal {
  return new Journal(path, true);
}

function write(journal: Journal, ...records: object[]): void {
  for (const record of records) journal.append(JSON.stringify(record));
  expect(journal.flush()).toBe(true);
}

describe("a journal", () => {
  it("holds each record as one line, in order, and only after a flush", () => {
    const journal = openJournal();
    journal.append(JSON.stringify({ n: 1, text: 'a\nb "é" \u2028' }));
    journal.append(JSON.stringify({ n: 2 }));
    expect(journal.hasPending).toBe(true);
    expect(fs.existsSync(journal.path)).toBe(false);
    expect(journal.flush()).toBe(true);
    expect(journal.hasPending).toBe(false);
    expect(linesOf(journal.path).map((line) => JSON.parse(line) as unknown)).toEqual([
      { n: 1, text: 'a\nb "é" \u2028' },
      { n: 2 },
    ]);
    journal.close();
  });

  it("is made with its directory when it is missing, for its owner only, and not with what lies above", () => {
    const deep = openJournal(join(tempDir(), "state", "analytics", "a.jsonl"));
    deep.append("{}");
    expect(deep.flush()).toBe(false);
    expect(deep.lastError).toMatchObject({ code: "ENOENT" });
    const journal = openJournal(join(tempDir(), "analytics", "a.jsonl"));
    write(journal, { n: 1 });
    expect(fs.statSync(journal.path).mode & 0o777).toBe(0o600);
    expect(fs.statSync(join(journal.path, "..")).mode & 0o777).toBe(0o700);
    journal.close();
  });

  it("goes on where it was after it was closed", () => {
    const journal = openJournal();
    write(journal, { n: 1 });
    journal.close();
    write(journal, { n: 2 });
    expect(readAll(journal.path)).toEqual({ records: [{ n: 1 }, { n: 2 }], bad: 0 });
    journal.close();
  });

  it("writes thousands of buffered records in one flush, none lost", () => {
    const journal = openJournal();
    const records = Array.from({ length: 3000 }, (_, n) => ({ n, text: "é".repeat(n % 300) }));
    write(journal, ...records);
    expect(readAll(journal.path)).toEqual({ records, bad: 0 });
    journal.close();
  });
});

describe("a torn tail", () => {
  it("of a killed writer does not swallow the next good record", () => {
    const path = join(tempDir(), "a.jsonl");
    fs.writeFileSync(path, '{"n":1}\n{"n":2,"text":"hal');
    const journal = openJournal(path);
    write(journal, { n: 3 });
    expect(readAll(path)).toEqual({ records: [{ n: 1 }, { n: 3 }], bad: 1 });
    journal.close();
  });

  it("that grows without a pause holds up no writer", async () => {
    const journal = openJournal();
    write(journal, { n: 1 });
    // It ends by itself, so that a writer that waits for its end is late, and not held for ever.
    const grows = `const { openSync, writeSync, fstatSync } = require("node:fs");
      const { parentPort, workerData } = require("node:worker_threads");
      const fd = openSync(workerData, "a");
      const end = performance.now() + ${GROWS_MS};
      for (let n = 0; performance.now() < end; n++) {
        writeSync(fd, " ");
        if (n === 100) parentPort.postMessage("grows");
      }`;
    const grower = new Worker(grows, { eval: true, workerData: journal.path });
    const ended = once(grower, "exit");
    await once(grower, "message");
    const beganMs = performance.now();
    write(journal, { n: 2 });
    expect(performance.now() - beganMs).toBeLessThan(GROWS_MS / 2);
    await ended;
    expect(readAll(journal.path).records).toContainEqual({ n: 1 });
    journal.close();
  });

  it("that another writer leaves while the journal is open does not swallow the next good record either", () => {
    const journal = openJournal();
    write(journal, { n: 1 });
    fs.appendFileSync(journal.path, '{"torn":');
    write(journal, { n: 2 });
    fs.appendFileSync(journal.path, '{"whole":true}\n');
    write(journal, { n: 3 });
    fs.appendFileSync(journal.path, "\0\0\0");
    write(journal, { n: 4 });
    expect(linesOf(journal.path)).toEqual([
      '{"n":1}',
      '{"torn":',
      '{"n":2}',
      '{"whole":true}',
      '{"n":3}',
      "\0\0\0",
      '{"n":4}',
    ]);
    journal.close();
  });
});

describe("a record over 16 kB", () => {
  const sizes = (path: string): number[] =>
    linesOf(path).map((line) => Buffer.byteLength(line) + 1);

  it("is cut, stays one line of valid JSON, and keeps its short members", () => {
    const journal = openJournal();
    const facts = { event: "failed", task_id: "a", t: 1767225600000 };
    const large: object[] = [
      { ...facts, error: "x".repeat(100_000) },
      { ...facts, error: "日".repeat(20_000) },
      { ...facts, error: '"\n\\'.repeat(20_000) },
      { ...facts, error: "😀".repeat(20_000) },
      { ...facts, list: Array.from({ length: 50_000 }, (_, n) => n) },
      { ...facts, deep: { deeper: [{ text: "y".repeat(50_000) }] } },
    ];
    write(journal, ...large);
    expect(readAll(journal.path)).toMatchObject({ records: large.map(() => facts), bad: 0 });
    for (const size of sizes(journal.path))
      expect(size).toBeLessThanOrEqual(JOURNAL_RECORD_BYTES_MAX);
    expect(Math.min(...sizes(journal.path))).toBeGreaterThan(200);
    journal.close();
  });

  it("that is large in number of members or in names loses the last ones", () => {
    const journal = openJournal();
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`member-${n}`, n]));
    write(
      journal,
      { event: "failed", ...many },
      { event: "failed", ["k".repeat(50_000)]: 1, t: 2 },
      { event: "failed", nested: Array.from({ length: 16 }, () => many), t: 3 },
    );
    const { records, bad } = readAll(journal.path);
    expect(bad).toBe(0);
    expect(records[0]).toMatchObject({ event: "failed", "member-0": 0, "member-100": 100 });
    expect(records[1]).toEqual({ event: "failed", t: 2 });
    expect(records[2]).toMatchObject({ event: "failed", t: 3 });
    for (const size of sizes(journal.path))
      expect(size).toBeLessThanOrEqual(JOURNAL_RECORD_BYTES_MAX);
    journal.close();
  });

  it("is the only one that is cut: whatever fits is written as it is", () => {
    const journal = openJournal();
    const records: unknown[] = [];
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ maxLength: 9 }), fc.string({ unit: "binary", maxLength: 2000 }), {
          maxKeys: 5,
        }),
        (object) => {
          const record = JSON.parse(JSON.stringify(object)) as object;
          const bytes = Buffer.byteLength(JSON.stringify(record)) + 1;
          fc.pre(bytes <= JOURNAL_RECORD_BYTES_MAX);
          records.push(record);
          write(journal, record);
        },
      ),
    );
    const exact = { text: "x".repeat(JOURNAL_RECORD_BYTES_MAX - '{"text":""}\n'.length) };
    write(journal, exact);
    expect(readAll(journal.path)).toEqual({ records: [...records, exact], bad: 0 });
    journal.close();
  });
});

describe("two processes", () => {
  it("that append 2,000 records each at the same time lose none and tear none", async () => {
    const path = join(tempDir(), "shared.jsonl");
    const writers = ["a", "b"].map((writer) =>
      startProgram("append-records.mjs", [path, writer, "2000"]),
    );
    for (const words of ["ready\n", "ready\nready\n"]) {
      const isReady = (program: Program): boolean =>
        program.stdout() === words || program.child.exitCode !== null;
      await waitFor(() => writers.every(isReady), { what: "both writers" });
      for (const program of writers) program.child.stdin?.write("go\n");
    }
    for (const program of writers) program.child.stdin?.end();
    for (const program of writers)
      expect(await program.ended, program.stderr()).toMatchObject({ exitCode: 0 });
    const { records, bad } = readAll(path);
    expect(bad).toBe(0);
    const order: Record<string, unknown[]> = { a: [], b: [] };
    for (const { writer, n } of records) order[String(writer)]?.push(n);
    const all = Array.from({ length: 2000 }, (_, n) => n);
    expect(order).toEqual({ a: all, b: all });
    // They did write at the same time.
    const writersInOrder = records.map((record) => record["writer"]);
    expect(writersInOrder.lastIndexOf("a")).toBeGreaterThan(writersInOrder.indexOf("b"));
    expect(writersInOrder.lastIndexOf("b")).toBeGreaterThan(writersInOrder.indexOf("a"));
  });
});

describe("a file that is taken away from its writer", () => {
  /** Writes numbered records until the file is there again. @returns how many in all */
  async function writeUntilBack(journal: Journal, written: number): Promise<number> {
    let n = written;
    await waitFor(
      () => {
        write(journal, { n });
        n++;
        return fs.existsSync(journal.path);
      },
      { timeoutMs: 5000, what: "the journal to be made again" },
    );
    return n;
  }

  it("by rotation is made again, and no record is lost on the way", async () => {
    const journal = openJournal();
    write(journal, { n: 0 });
    const old = rotate(journal.path, 1, Date.UTC(2026, 0, 2, 3, 4, 5, 6)) ?? "";
    expect(old).toBe(journal.path.replace(".jsonl", ".2026-01-02T03-04-05-006Z.jsonl"));
    const count = await writeUntilBack(journal, 1);
    write(journal, { n: count });
    const records = [...readAll(old).records, ...readAll(journal.path).records];
    expect(records).toEqual(Array.from({ length: count + 1 }, (_, n) => ({ n })));
    expect(readAll(journal.path).records).toHaveLength(2);
    journal.close();
  });

  it("by deletion, with its directory, is made again", async () => {
    const journal = openJournal(join(tempDir(), "analytics", "a.jsonl"));
    write(journal, { n: 0 });
    fs.rmSync(join(journal.path, ".."), { recursive: true });
    const count = await writeUntilBack(journal, 1);
    expect(readAll(journal.path)).toEqual({ records: [{ n: count - 1 }], bad: 0 });
    journal.close();
  });

  it("is rotated only above the size, and never over another file", () => {
    const path = join(tempDir(), "a.jsonl");
    expect(rotate(path, 0, 0)).toBeUndefined();
    fs.writeFileSync(path, "12345");
    expect(rotate(path, 5, 0)).toBeUndefined();
    fs.writeFileSync(path.replace(".jsonl", ".1970-01-01T00-00-00-000Z.jsonl"), "older");
    expect(rotate(path, 4, 0)).toBeUndefined();
    expect(fs.readFileSync(path, "utf8")).toBe("12345");
    expect(rotate(path, 4, 1)).toBe(path.replace(".jsonl", ".1970-01-01T00-00-00-001Z.jsonl"));
    expect(fs.existsSync(path)).toBe(false);
  });
});

describe("a place that takes nothing", () => {
  it("stops nobody: records are kept, and the reason can be seen", () => {
    const journal = openJournal("/dev/full");
    journal.append(JSON.stringify({ n: 1 }));
    expect(journal.flush()).toBe(false);
    expect(journal.flush()).toBe(false);
    expect(journal.hasPending).toBe(true);
    expect(journal.lastError).toMatchObject({ code: "EINVAL" });
    expect(journal.droppedCount).toBe(0);
    journal.close();
  });

  it("costs a bounded amount of memory: the oldest records are dropped, and counted", () => {
    const dir = tempDir();
    const journal = openJournal(join(dir, "a.jsonl"));
    fs.mkdirSync(journal.path);
    const text = "x".repeat(10_000);
    const count = Math.ceil((1.5 * JOURNAL_BUFFER_BYTES_MAX) / text.length);
    for (let n = 0; n < count; n++) {
      journal.append(JSON.stringify({ n, text }));
      if (n % 50 === 0) expect(journal.flush()).toBe(false);
    }
    expect(journal.lastError).toMatchObject({ code: "EISDIR" });
    expect(journal.droppedCount).toBeGreaterThan(count / 4);
    fs.rmdirSync(journal.path);
    expect(journal.flush()).toBe(true);
    expect(journal.lastError).toBeUndefined();
    const { records, bad } = readAll(journal.path);
    expect(bad).toBe(0);
    expect(records.length + journal.droppedCount).toBe(count);
    expect(records.map((record) => record["n"])).toEqual(
      Array.from({ length: records.length }, (_, i) => journal.droppedCount + i),
    );
    expect(records.length * text.length).toBeLessThanOrEqual(JOURNAL_BUFFER_BYTES_MAX);
    journal.close();
  });
});

describe.skipIf(!canMount())("a full disk", () => {
  it("loses and repeats no record once there is room again, wherever the write was cut", () => {
    const disk = smallDisk();
    for (let extra = 0; extra < 40; extra++) {
      const journal = openJournal(join(disk.dir, `journal-${extra}.jsonl`));
      // The first record leaves the file's first page nearly full; the ones that follow meet its end at every place.
      write(journal, { n: 0, text: "x".repeat(3900 + extra) });
      disk.fill(0);
      for (let n = 1; n <= 12; n++) {
        journal.append(JSON.stringify({ n, text: "é".repeat(n) }));
        journal.flush();
      }
      expect(journal.flush()).toBe(false);
      expect(journal.lastError).toMatchObject({ code: "ENOSPC" });
      disk.free();
      expect(journal.flush()).toBe(true);
      write(journal, { n: 13 });
      const { records, bad } = readAll(journal.path);
      expect(records.map((record) => record["n"])).toEqual(Array.from({ length: 14 }, (_, n) => n));
      expect(bad).toBeLessThanOrEqual(1);
      journal.close();
      fs.rmSync(journal.path);
    }
  });

  it("keeps what a second writer needs: its records stand whole beside ours", () => {
    const disk = smallDisk();
    const path = join(disk.dir, "a.jsonl");
    const first = openJournal(path);
    const second = openJournal(path);
    write(first, { w: 1, n: 0, text: "x".repeat(3000) });
    disk.fill(0);
    for (let n = 1; n < 60; n++) {
      first.append(JSON.stringify({ w: 1, n }));
      first.flush();
      second.append(JSON.stringify({ w: 2, n }));
      second.flush();
    }
    disk.free();
    expect(first.flush()).toBe(true);
    expect(second.flush()).toBe(true);
    for (const w of [1, 2]) {
      const ours = readAll(path).records.filter((record) => record["w"] === w);
      expect(ours.map((record) => record["n"])).toEqual(
        Array.from({ length: w === 1 ? 60 : 59 }, (_, n) => (w === 1 ? n : n + 1)),
      );
    }
    first.close();
    second.close();
  });
});
