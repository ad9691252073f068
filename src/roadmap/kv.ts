/**
 * Values that nodes leave for each other: `kv/<node>.json` holds the latest, `kv/history.jsonl` every put. Several
 * processes write at once and lose nothing; a run that lost its lease cannot overwrite what a newer one put.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { ErrInvalidKv, ErrIo, ErrLeaseLost, systemCode } from "../core/errors.ts";
import { parseObject } from "../core/json-object.ts";
import {
  explainBadKey,
  explainBadScope,
  type KvEntry,
  type KvHistoryRecord,
  type KvSource,
} from "../core/kv.ts";
import {
  KV_DOCUMENT_BYTES_MAX,
  KV_HISTORY_VALUE_BYTES_MAX,
  KV_VALUE_BYTES_MAX,
} from "../core/limits.ts";
import { parseLease } from "../core/names.ts";
import { RUN_SCOPE } from "../core/roadmap.ts";
import { replaceDocument } from "../host/documents.ts";
import { lockFile } from "../host/file-lock.ts";
import { openToRead, readRegularText } from "../host/regular-file.ts";
import { Journal } from "../journal/journal.ts";
import { readJournal } from "../journal/read.ts";

/** Everything that `change` does to one node, in one replacement of its file. */
export interface KvChange {
  puts?: Readonly<Record<string, unknown>>;
  removes?: readonly string[];
}

type Entries = Map<string, KvEntry>;

/** Times that a lost race is run again. */
const TRIES_MAX = 100;
/** Something else than a file that we made is in its place. */
const NO_FILE: ReadonlySet<string> = new Set(["EINVAL", "ELOOP", "ENXIO"]);
const NO_LINK: ReadonlySet<string> = new Set([
  "ENOENT",
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "EMLINK",
]);
/** A replacement takes far less (ms), and nobody loses the lock sooner. */
const STALL_MS = 1000;
/** How much of the end of the history is looked at (bytes). */
const HISTORY_TAIL_BYTES = 64 * 1024 * 1024;

export class KvStore {
  readonly dir: string;
  private readonly clock: Clock;
  private readonly isDurable: boolean;
  private readonly historyFile: Journal;
  /** The last change of each node in this process: they queue here, and only processes meet at the lock. */
  private readonly queues = new Map<string, Promise<unknown>>();

  /** @param durability with `power`, a change survives a power cut; its line in the history may not */
  constructor(dir: string, clock: Clock, durability: "power" | "process") {
    this.dir = dir;
    this.clock = clock;
    this.isDurable = durability === "power";
    this.historyFile = new Journal(join(dir, "history.jsonl"));
  }

  /** @throws ErrInvalidKv when the node or key cannot be one */
  get(node: string, key: string): KvEntry | undefined {
    demand(explainBadKey(key));
    return this.list(node).get(key);
  }

  /** All values of a node, by key. A broken file is read from the history; nothing is changed. @throws ErrInvalidKv */
  list(node: string): ReadonlyMap<string, KvEntry> {
    demand(explainBadScope(node));
    return this.read(node).entries;
  }

  /** @returns false when this very value of this very run was there already. @throws as `change` */
  put(node: string, key: string, value: unknown, source: KvSource): Promise<boolean> {
    return this.change(node, { puts: { [key]: value } }, source);
  }

  /** @returns false when there was none. @throws as `change` */
  remove(node: string, key: string, source: KvSource): Promise<boolean> {
    return this.change(node, { removes: [key] }, source);
  }

  /**
   * Puts and removes several keys of one node at once. A crash leaves all of it or none of it in the node's file.
   * @returns false when there was nothing to change
   * @throws ErrInvalidKv; ErrLeaseLost when a newer run of the node has put values; a system error
   */
  async change(node: string, change: KvChange, source: KvSource): Promise<boolean> {
    const puts = Object.entries(change.puts ?? {});
    const removes = change.removes ?? [];
    demand(explainBadScope(node));
    for (const key of [...puts.map(([key]) => key), ...removes]) demand(explainBadKey(key));
    for (const [key, value] of puts) demand(explainBadValue(key, value));
    const before = this.queues.get(node) ?? Promise.resolve();
    const work = before.then(() => this.changeLocked(node, puts, removes, source));
    const settled = work.catch(() => undefined);
    this.queues.set(node, settled);
    void settled.then(() => {
      if (this.queues.get(node) === settled) this.queues.delete(node);
    });
    return work;
  }

  /** Every put and removal, the oldest first. */
  async *history(node?: string): AsyncGenerator<KvHistoryRecord> {
    for await (const record of readJournal(this.historyFile.path)) {
      const one = record as unknown as KvHistoryRecord;
      if (node === undefined || one.node === node) yield one;
    }
  }

  close(): void {
    this.historyFile.flush();
    this.historyFile.close();
  }

  private async changeLocked(
    node: string,
    puts: readonly [string, unknown][],
    removes: readonly string[],
    source: KvSource,
  ): Promise<boolean> {
    // The supervisor writes again what a worker has written: that needs no lock.
    const { entries: known, isBroken: isUnknown } = this.read(node);
    const isThere =
      puts.every(([key, value]) => isSame(known.get(key), value, source)) &&
      !removes.some((key) => known.has(key));
    if (isThere && !isUnknown) return false;
    const release = await this.lock(node);
    let writtenAtMs = Number.POSITIVE_INFINITY;
    /** What somebody put without our knowing, and we replaced: it is put back. */
    let overwritten: Entries = new Map();
    /** What somebody removed without our knowing, and when. */
    const removed = new Map<string, number>();
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const { entries, stamp, isBroken } = this.read(node);
        // What somebody put after us stands.
        const isNewer = (key: string): boolean => (entries.get(key)?.t ?? -1) >= writtenAtMs;
        const newPuts = puts.filter(
          ([key, value]) =>
            !isSame(entries.get(key), value, source) && !isNewer(key) && !removed.has(key),
        );
        const newRemoves = removes.filter((key) => entries.has(key) && !isNewer(key));
        const missing = [...overwritten].filter(([key, { t }]) => t > (entries.get(key)?.t ?? -1));
        for (const [key, t] of removed)
          if ((entries.get(key)?.t ?? Number.POSITIVE_INFINITY) <= t) newRemoves.push(key);
        if (newPuts.length + newRemoves.length + missing.length === 0) return tries > 0;
        this.refuseZombie(node, entries, source);
        if (isBroken) this.setAside(node);
        for (const [key, entry] of missing) entries.set(key, entry);
        const nowMs = this.clock.wallMs();
        const next = this.apply(node, entries, newPuts, newRemoves, source, nowMs);
        // History first: from a file that is lost in between, or never written, the value comes back.
        if (writtenAtMs === Number.POSITIVE_INFINITY) {
          this.record(node, next, newPuts, newRemoves, source);
          writtenAtMs = nowMs;
        }
        // Correctness does not rest on the lock: what was replaced is compared with what was read, and the file is read
        // again, because a writer without the lock may have done the same to us.
        const historyBytes = sizeOf(this.historyFile.path);
        const beganMs = this.clock.monotonicMs();
        overwritten = this.replace(node, next, isBroken ? "" : stamp);
        // Whoever stood still in there may have replaced what it has never seen; the history has it.
        if (this.clock.monotonicMs() - beganMs > STALL_MS)
          for (const { node: _node, key, op, bytes: _bytes, ...entry } of this.since(
            node,
            historyBytes,
          )) {
            if (op === "remove") removed.set(key, entry.t);
            else removed.delete(key);
            if (op === "remove") overwritten.delete(key);
            else overwritten.set(key, entry);
          }
        if (release === undefined) await wait(5 + this.clock.random() * 20);
      }
      throw new ErrIo(`the values of ${node} change all the time`, {
        path: this.pathOf(node),
        phase: "put",
        hint: "try again",
      });
    } finally {
      await release?.();
    }
  }

  private apply(
    node: string,
    entries: Entries,
    puts: readonly [string, unknown][],
    removes: readonly string[],
    source: KvSource,
    t: number,
  ): Entries {
    const next = new Map(entries);
    for (const [key, value] of puts) next.set(key, entryOf(value, t, source));
    for (const key of removes) next.delete(key);
    const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(next)));
    if (bytes > KV_DOCUMENT_BYTES_MAX)
      throw new ErrInvalidKv(
        `the values of ${node} would have ${bytes} bytes, more than the limit of ${KV_DOCUMENT_BYTES_MAX}`,
        {
          path: this.pathOf(node),
          phase: "put",
          hint: "put large data into a file and its path here",
        },
      );
    return next;
  }

  private record(
    node: string,
    next: Entries,
    puts: readonly [string, unknown][],
    removes: readonly string[],
    source: KvSource,
  ): void {
    for (const [key] of puts) {
      const entry = next.get(key);
      if (entry !== undefined)
        this.historyFile.append(JSON.stringify({ node, key, op: "put", ...shortened(entry) }));
    }
    for (const key of removes) {
      const entry = entryOf(null, this.clock.wallMs(), source);
      this.historyFile.append(JSON.stringify({ node, key, op: "remove", ...entry }));
    }
    // A full disk keeps the lines for later: the latest values count for more.
    this.historyFile.flush();
  }

  /** A run that is not the newest of its node changes nothing. Rule: attempts count up; submissions by their first put. */
  private refuseZombie(node: string, entries: Entries, source: KvSource): void {
    const own = source.lease === null ? undefined : parseLease(source.lease);
    if (own === undefined) return;
    const others = new Set<string>();
    for (const { lease } of entries.values()) {
      const stored = lease === null ? undefined : parseLease(lease);
      if (stored === undefined) continue;
      if (stored.submission !== own.submission) others.add(stored.submission);
      else if (stored.attempt > own.attempt)
        this.refuse(
          node,
          `attempt ${stored.attempt} has put values, this is attempt ${own.attempt}`,
        );
    }
    // The run's scope holds values of many nodes, whose submissions do not follow each other.
    if (others.size === 0 || node === RUN_SCOPE) return;
    const order: string[] = [];
    for (const record of this.tail(node)) {
      const submission = record.lease === null ? undefined : parseLease(record.lease)?.submission;
      if (submission !== undefined && !order.includes(submission)) order.push(submission);
    }
    const place = order.indexOf(own.submission);
    if (place !== -1 && order.slice(place + 1).some((one) => others.has(one)))
      this.refuse(node, "the node was started anew since, and has put values");
  }

  private refuse(node: string, why: string): never {
    throw new ErrLeaseLost(`kv of ${node}: ${why}; nothing was changed`, {
      id: node,
      path: this.pathOf(node),
      phase: "put",
    });
  }

  private read(node: string): { entries: Entries; stamp: string; isBroken: boolean } {
    const stamp = stampAt(this.pathOf(node));
    let text: string;
    try {
      text = readRegularText(this.pathOf(node));
    } catch (error) {
      if (systemCode(error) === "ENOENT") return { entries: new Map(), stamp, isBroken: false };
      if (!NO_FILE.has(systemCode(error))) throw error;
      text = "";
    }
    const entries = entriesOf(text);
    return entries === undefined
      ? { entries: this.rebuild(node), stamp, isBroken: true }
      : { entries, stamp, isBroken: false };
  }

  /**
   * Publishes the whole file. The old one keeps a second name for a moment: `link` and `rename` stand side by side. What
   * is put between these two calls is not seen here; it takes a writer that stands still between them for so long that it
   * loses the lock, and then sees in the history what it has replaced.
   * @returns the values of a file that was replaced without having been read; mostly none
   */
  private replace(node: string, entries: Entries, stamp: string): Entries {
    const path = this.pathOf(node);
    const old = join(this.dir, ".tmp", `${node}.old.${process.pid}`);
    let replaced: Entries | undefined;
    const beforePublish = (): void => {
      fs.rmSync(old, { force: true });
      try {
        fs.linkSync(path, old);
      } catch (error) {
        // No file yet, or a file system without hard links: then the look at it afterwards has to do.
        if (!NO_LINK.has(systemCode(error))) throw error;
      }
    };
    const { isDurable } = this;
    replaceDocument(path, Object.fromEntries(entries), { beforePublish, isDurable });
    const oldStamp = stampAt(old);
    if (oldStamp !== "" && oldStamp !== stamp) replaced = entriesOf(fs.readFileSync(old, "utf8"));
    fs.rmSync(old, { force: true });
    return replaced ?? new Map();
  }

  /** A file that is not ours to understand is kept beside. */
  private setAside(node: string): void {
    const path = this.pathOf(node);
    for (let n = 1; ; n++) {
      const aside = `${path}.bad-${n}`;
      if (fs.existsSync(aside)) continue;
      try {
        fs.renameSync(path, aside);
      } catch (error) {
        if (systemCode(error) !== "ENOENT") throw error;
      }
      return;
    }
  }

  private rebuild(node: string): Entries {
    const entries: Entries = new Map();
    for (const { node: _node, key, op, bytes: _bytes, ...entry } of this.tail(node)) {
      if (op === "remove") entries.delete(key);
      else entries.set(key, entry);
    }
    return entries;
  }

  /** The records of one node near the end of the history. */
  private tail(node: string): KvHistoryRecord[] {
    return this.since(node, 0);
  }

  /** Those that stand behind the first `bytes` of the history. */
  private since(node: string, bytes: number): KvHistoryRecord[] {
    const records: KvHistoryRecord[] = [];
    const mark = `"node":${JSON.stringify(node)}`;
    for (const line of readTailLines(this.historyFile.path, bytes)) {
      const record = line.includes(mark) ? parseObject(line.replaceAll("\0", "")) : undefined;
      if (record?.["node"] === node && isEntry(record))
        records.push(record as unknown as KvHistoryRecord);
    }
    return records;
  }

  private pathOf(node: string): string {
    return join(this.dir, `${node}.json`);
  }

  /** Undefined when it could not be had: its owner hangs. */
  private lock(node: string): Promise<(() => Promise<void>) | undefined> {
    const dir = join(this.dir, ".tmp");
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    return lockFile(join(dir, `${node}.lock`));
  }
}

function demand(fault: string | undefined): void {
  if (fault !== undefined) throw new ErrInvalidKv(fault, { phase: "kv" });
}

function explainBadValue(key: string, value: unknown): string | undefined {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return `the value of ${key} is no JSON`;
  const bytes = Buffer.byteLength(text);
  return bytes <= KV_VALUE_BYTES_MAX
    ? undefined
    : `the value of ${key} has ${bytes} bytes as JSON, more than the limit of ${KV_VALUE_BYTES_MAX}`;
}

function entryOf(value: unknown, t: number, { run, lease, attempt, by }: KvSource): KvEntry {
  return { value, at: new Date(t).toISOString(), t, run, lease, attempt, by };
}

function isSame(entry: KvEntry | undefined, value: unknown, source: KvSource): boolean {
  return (
    entry !== undefined &&
    entry.run === source.run &&
    entry.cut === undefined &&
    JSON.stringify(entry.value) === JSON.stringify(value)
  );
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

function entriesOf(text: string): Entries | undefined {
  const document = parseObject(text);
  if (document === undefined) return undefined;
  const entries = Object.entries(document);
  return entries.every(([key, entry]) => explainBadKey(key) === undefined && isEntry(entry))
    ? new Map(entries as [string, KvEntry][])
    : undefined;
}

function isEntry(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Partial<KvEntry>;
  return (
    "value" in entry &&
    typeof entry.t === "number" &&
    (typeof entry.lease === "string" || entry.lease === null) &&
    (typeof entry.run === "string" || entry.run === null)
  );
}

/** What changes whenever the file is another one; its link count does not. */
function stampAt(path: string): string {
  const stats = fs.statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : `${stats.ino}.${stats.size}.${stats.mtimeNs}`;
}

function sizeOf(path: string): number {
  return fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
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
    const buffer = Buffer.allocUnsafe(Math.min(wanted, HISTORY_TAIL_BYTES));
    const got = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8", 0, got).split("\n");
  } finally {
    fs.closeSync(fd);
  }
}
