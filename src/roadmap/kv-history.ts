/** `kv/history.jsonl`: every put and removal, of all nodes. A file of values that is lost can be made from it again. */
import fs from "node:fs";
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import type { KvEntry, KvHistoryRecord, KvSource } from "../core/kv.ts";
import { KV_HISTORY_VALUE_BYTES_MAX } from "../core/limits.ts";
import { openToRead } from "../host/regular-file.ts";
import { Journal } from "../journal/journal.ts";
import { readJournal } from "../journal/read.ts";
import { type Entries, entryOf, isEntry } from "./kv-entries.ts";

/** How much of the end is looked at (bytes). */
const TAIL_BYTES = 64 * 1024 * 1024;

export class KvHistory {
  private readonly file: Journal;

  constructor(dir: string) {
    this.file = new Journal(join(dir, "history.jsonl"), true);
  }

  /** Its size (bytes). */
  get size(): number {
    return fs.statSync(this.file.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** @param next holds what is put; @param t epoch ms */
  record(
    node: string,
    next: Entries,
    puts: readonly [string, unknown][],
    removes: readonly string[],
    source: KvSource,
    t: number,
  ): void {
    for (const [key] of puts) {
      const entry = next.get(key);
      if (entry !== undefined)
        this.file.append(JSON.stringify({ node, key, op: "put", ...shortened(entry) }));
    }
    for (const key of removes) {
      const entry = entryOf(null, t, source);
      this.file.append(JSON.stringify({ node, key, op: "remove", ...entry }));
    }
    // A full disk keeps the lines for later: the latest values count for more.
    this.file.flush();
  }

  /** All of it, or of one node, the oldest first. */
  async *read(node?: string): AsyncGenerator<KvHistoryRecord> {
    for await (const record of readJournal(this.file.path)) {
      const one = record as unknown as KvHistoryRecord;
      if (node === undefined || one.node === node) yield one;
    }
  }

  /** Its records near the end, behind the first `bytes` of the file. */
  since(node: string, bytes: number): KvHistoryRecord[] {
    const records: KvHistoryRecord[] = [];
    const mark = `"node":${JSON.stringify(node)}`;
    for (const line of readTailLines(this.file.path, bytes)) {
      const record = line.includes(mark) ? parseObject(line.replaceAll("\0", "")) : undefined;
      if (record?.["node"] === node && isEntry(record))
        records.push(record as unknown as KvHistoryRecord);
    }
    return records;
  }

  /** The values of a node as far as the records near the end tell. */
  rebuild(node: string): Entries {
    const entries: Entries = new Map();
    for (const { node: _node, key, op, bytes: _bytes, ...entry } of this.since(node, 0)) {
      if (op === "remove") entries.delete(key);
      else entries.set(key, entry);
    }
    return entries;
  }

  close(): void {
    this.file.flush();
    this.file.close();
  }
}

function shortened(entry: KvEntry): KvEntry & { bytes?: number } {
  const bytes = Buffer.from(JSON.stringify(entry.value), "utf8");
  if (bytes.length <= KV_HISTORY_VALUE_BYTES_MAX) return entry;
  // Escaped once more as a string in the line, this may double.
  const begin = new TextDecoder("utf-8").decode(bytes.subarray(0, KV_HISTORY_VALUE_BYTES_MAX / 2), {
    stream: true,
  });
  return { ...entry, value: `${begin}…`, cut: true, bytes: bytes.length };
}

/** @param from lines that begin before it are left out (bytes) */
function readTailLines(path: string, from: number): string[] {
  let fd: number;
  try {
    fd = openToRead(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
  try {
    const { size } = fs.fstatSync(fd);
    const wanted = size < from ? size : size - from;
    const buffer = Buffer.allocUnsafe(Math.min(wanted, TAIL_BYTES));
    const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8", 0, got).split("\n");
  } finally {
    fs.closeSync(fd);
  }
}
