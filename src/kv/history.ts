/**
 * Writes and reads `kv/history.jsonl`, which records every put and removal of all nodes. A lost file of values is rebuilt from
 * it. After a rotation the older lines are in the rotated files, until these are removed.
 */
import fs from "node:fs";
import { systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import type { KvEntry, KvHistoryRecord, KvSource } from "../core/kv.ts";
import { KV_HISTORY_ROTATE_BYTES, KV_HISTORY_VALUE_BYTES_MAX } from "../core/limits.ts";
import { kvHistoryOf } from "../core/state-tree.ts";
import { openToRead, statOf } from "../host/regular-file.ts";
import { Journal } from "../journal/journal.ts";
import { readJournal } from "../journal/read.ts";
import { lastRotated, rotatedOf } from "../journal/rotated.ts";
import { type Entries, entryOf, isEntry } from "./entries.ts";

/** How much of the end is read (bytes). It is in the current file and in the last rotated one. */
const TAIL_BYTES = KV_HISTORY_ROTATE_BYTES;

/** A position at the end of the history: the sizes (bytes) of its last two files, by inode. */
export type HistoryMark = ReadonlyMap<number, number>;

export class KvHistory {
  private readonly file: Journal;

  constructor(dir: string) {
    this.file = new Journal(kvHistoryOf({ kv: dir }), true);
  }

  /** The current end of the history. */
  mark(): HistoryMark {
    const stats = this.lastFiles().map((path) => statOf(path));
    return new Map(stats.flatMap((one) => (one === undefined ? [] : [[one.ino, one.size]])));
  }

  /** Records a change. @param next the entries after the change @param t epoch ms */
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
    // On a full disk the lines stay in memory for later, and the put continues: values matter more than their history.
    this.file.flush();
  }

  /** All records, or those of one node, the oldest first. */
  async *read(node?: string): AsyncGenerator<KvHistoryRecord> {
    for (const path of [...rotatedOf(this.file.path), this.file.path])
      for await (const record of readJournal(path)) {
        const one = record as unknown as KvHistoryRecord;
        if (node === undefined || one.node === node) yield one;
      }
  }

  /** The records of a node near the end of the history; with a mark, only those after it. */
  since(node: string, mark: HistoryMark = new Map()): KvHistoryRecord[] {
    const records: KvHistoryRecord[] = [];
    const member = `"node":${JSON.stringify(node)}`;
    for (const line of this.tailLines(mark)) {
      const record = line.includes(member) ? parseObject(line.replaceAll("\0", "")) : undefined;
      if (record?.["node"] === node && isEntry(record))
        records.push(record as unknown as KvHistoryRecord);
    }
    return records;
  }

  /** The values of a node, rebuilt from the records near the end. */
  rebuild(node: string): Entries {
    const entries: Entries = new Map();
    for (const { node: _node, key, op, bytes: _bytes, ...entry } of this.since(node)) {
      if (op === "remove") entries.delete(key);
      else entries.set(key, entry);
    }
    return entries;
  }

  private tailLines(mark: HistoryMark): string[] {
    let bytesLeft = TAIL_BYTES;
    const pieces: string[][] = [];
    for (const path of this.lastFiles()) {
      const tail = readTail(path, mark, bytesLeft);
      bytesLeft -= tail.bytes;
      pieces.unshift(tail.lines);
    }
    return pieces.flat();
  }

  /** The current file, then the last rotated one. */
  private lastFiles(): string[] {
    const rotated = lastRotated(this.file.path);
    return [this.file.path, ...(rotated === undefined ? [] : [rotated])];
  }

  close(): void {
    this.file.flush();
    this.file.close();
  }
}

function shortened(entry: KvEntry): KvEntry & { bytes?: number } {
  const bytes = Buffer.from(JSON.stringify(entry.value), "utf8");
  if (bytes.length <= KV_HISTORY_VALUE_BYTES_MAX) return entry;
  // Half of the limit, because escaping the text as a string may double its length.
  const begin = new TextDecoder("utf-8").decode(bytes.subarray(0, KV_HISTORY_VALUE_BYTES_MAX / 2), {
    stream: true,
  });
  return { ...entry, value: `${begin}…`, cut: true, bytes: bytes.length };
}

/** Reads the part of a file after the mark, but at most `bytesMax` from its end. */
function readTail(
  path: string,
  mark: HistoryMark,
  bytesMax: number,
): { bytes: number; lines: string[] } {
  let fd: number;
  try {
    fd = openToRead(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return { bytes: 0, lines: [] };
    throw error;
  }
  try {
    const { size, ino } = fs.fstatSync(fd);
    const from = mark.get(ino) ?? 0;
    const wanted = size < from ? size : size - from;
    const buffer = Buffer.allocUnsafe(Math.min(wanted, bytesMax));
    const bytes = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return { bytes, lines: buffer.toString("utf8", 0, bytes).split("\n") };
  } finally {
    fs.closeSync(fd);
  }
}
