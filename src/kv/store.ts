/**
 * Stores values that nodes leave for each other: `kv/<node>.json` holds the latest, `kv/history.jsonl` every put. Several
 * processes can write at once without losing a value. A run that lost its lease cannot overwrite the values of a newer run.
 */
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { ErrInvalidKv, ErrIo, ErrLeaseLost, systemCode } from "../core/errors.ts";
import {
  explainBadKey,
  explainBadScope,
  type KvEntry,
  type KvHistoryRecord,
  type KvSource,
} from "../core/kv.ts";
import { KV_DOCUMENT_BYTES_MAX } from "../core/limits.ts";
import { parseLease } from "../core/names.ts";
import { RUN_SCOPE } from "../core/roadmap.ts";
import { lockFile } from "../host/file-lock.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { exactStatOf, readRegularText } from "../host/regular-file.ts";
import { replaceDocument } from "../host/replace-document.ts";
import { setAside } from "../host/set-aside.ts";
import { type Entries, entriesOf, entryOf, explainBadValue, isSame } from "./entries.ts";
import { KvHistory } from "./history.ts";

/** A change of one node's values. Its file is replaced once. */
export interface KvChange {
  puts?: Readonly<Record<string, unknown>>;
  removes?: readonly string[];
}

/** At most this many tries when other writers change the file at the same time. */
const TRIES_MAX = 100;
/** Error codes that mean that something other than a regular file of kv is at its path. */
const NO_FILE: ReadonlySet<string> = new Set(["EINVAL", "ELOOP", "ENXIO", "EFBIG"]);
const NO_LINK: ReadonlySet<string> = new Set([
  "ENOENT",
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "EMLINK",
]);
/** If a replacement took longer than this (ms), the process may have been stopped. It loses its lock only after a longer time. */
const STALL_MS = 1000;

export class KvStore {
  private readonly isDurable: boolean;
  private readonly log: KvHistory;
  /** The last change of each node in this process. Changes in one process wait here; the lock is for other processes. */
  private readonly queues = new Map<string, Promise<unknown>>();

  /** @param durability with `power`, a change survives a power cut, but its line in the history may be lost */
  constructor(
    readonly dir: string,
    private readonly clock: Clock,
    durability: "power" | "process",
  ) {
    this.isDurable = durability === "power";
    this.log = new KvHistory(dir);
  }

  /** @throws ErrInvalidKv when the node or key is not valid */
  get(node: string, key: string): KvEntry | undefined {
    demand(explainBadKey(key));
    return this.list(node).get(key);
  }

  /** All values of a node, by key. If its file is broken, they come from the history. No file is changed. @throws ErrInvalidKv */
  list(node: string): ReadonlyMap<string, KvEntry> {
    demand(explainBadScope(node));
    return this.read(node).entries;
  }

  /** @returns false when the same run had already put the same value. @throws as `change` */
  put(node: string, key: string, value: unknown, source: KvSource): Promise<boolean> {
    return this.change(node, { puts: { [key]: value } }, source);
  }

  /** @returns false when the key had no value. @throws as `change` */
  remove(node: string, key: string, source: KvSource): Promise<boolean> {
    return this.change(node, { removes: [key] }, source);
  }

  /**
   * Puts and removes several keys of one node at once. After a crash, the node's file holds the whole change or nothing of it.
   * @returns false when nothing had to change
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

  /** All puts and removals, the oldest first. */
  async *history(node?: string): AsyncGenerator<KvHistoryRecord> {
    yield* this.log.read(node);
  }

  close(): void {
    this.log.close();
  }

  private async changeLocked(
    node: string,
    puts: readonly [string, unknown][],
    removes: readonly string[],
    source: KvSource,
  ): Promise<boolean> {
    // The supervisor repeats the puts of a worker. When all values are there already, no lock is needed.
    const { entries: known, isBroken: isUnknown } = this.read(node);
    const isThere =
      puts.every(([key, value]) => isSame(known.get(key), value, source)) &&
      !removes.some((key) => known.has(key));
    if (isThere && !isUnknown) return false;
    const release = await this.lock(node);
    let writtenAtMs = Number.POSITIVE_INFINITY;
    /** Values of another writer that this one replaced without having read them. They are put back. */
    let overwritten: Entries = new Map();
    /** Keys that another writer removed while this one was stopped, and when (epoch ms). */
    const removed = new Map<string, number>();
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const { entries, stamp, isBroken } = this.read(node);
        // If another writer put a value after this change was written, that value stays.
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
        // What cannot be read is kept beside the new file.
        if (isBroken) setAside(this.pathOf(node));
        for (const [key, entry] of missing) entries.set(key, entry);
        const nowMs = this.clock.wallMs();
        const next = this.apply(node, entries, newPuts, newRemoves, source, this.clock.wallMs());
        // The history is written first. If the file is then lost or never written, the value can be rebuilt from the history.
        if (writtenAtMs === Number.POSITIVE_INFINITY) {
          this.log.record(node, next, newPuts, newRemoves, source, this.clock.wallMs());
          writtenAtMs = nowMs;
        }
        // The result is right even without the lock: the replaced file is compared with the one that was read, and the file is
        // read once more, because a writer without the lock may have replaced this change.
        const historyEnd = this.log.mark();
        const beganMs = this.clock.monotonicMs();
        overwritten = this.replace(node, next, isBroken ? "" : stamp);
        // If this process was stopped during the replacement, it may have replaced a value that it never saw. The history has it.
        if (this.clock.monotonicMs() - beganMs > STALL_MS)
          for (const { node: _node, key, op, bytes: _bytes, ...entry } of this.log.since(
            node,
            historyEnd,
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

  /** Refuses a run that is not the newest of its node. Attempts are ordered by number, submissions by their first put. */
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
    // The scope `__run__` holds values of many nodes, so its submissions have no order.
    if (others.size === 0 || node === RUN_SCOPE) return;
    const order: string[] = [];
    for (const record of this.log.since(node)) {
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
      ? { entries: this.log.rebuild(node), stamp, isBroken: true }
      : { entries, stamp, isBroken: false };
  }

  /**
   * Publishes the whole file. Right before the `rename`, a `link` keeps the old file under a second name. A value that another
   * writer puts between these two calls is not seen here. That happens only when this process is stopped between them for so
   * long that it loses the lock; it then finds the replaced value in the history.
   * @returns the values of a file that was replaced without having been read; usually there is no such file
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
        // There is no file yet, or the file system has no hard links. Then only the next read of the file finds a lost value.
        if (!NO_LINK.has(systemCode(error))) throw error;
      }
    };
    const { isDurable } = this;
    replaceDocument(path, Object.fromEntries(entries), { beforePublish, isDurable, missingMax: 2 });
    const oldStamp = stampAt(old);
    if (oldStamp !== "" && oldStamp !== stamp) replaced = entriesOf(readRegularText(old));
    fs.rmSync(old, { force: true });
    return replaced ?? new Map();
  }

  private pathOf(node: string): string {
    return join(this.dir, `${node}.json`);
  }

  /** Takes the lock of a node's file. Undefined when its owner hangs and did not release it in time. */
  private lock(node: string): Promise<(() => Promise<void>) | undefined> {
    const dir = join(this.dir, ".tmp");
    makeDirs(dir, 2);
    return lockFile(join(dir, `${node}.lock`));
  }
}

function demand(fault: string | undefined): void {
  if (fault !== undefined) throw new ErrInvalidKv(fault, { phase: "kv" });
}

/** Identifies a version of a file. It does not use the change time (ctime), because a new hard link changes that. */
function stampAt(path: string): string {
  const stats = exactStatOf(path);
  return stats === undefined ? "" : `${stats.ino}.${stats.size}.${stats.mtimeNs}`;
}
