/** Which ids are taken, ignoring case: those of tasks in work, and those that have settled. */
import { basename, dirname, join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import {
  errorName,
  foldId,
  isId,
  parseErrorName,
  resultName,
  resultsName,
} from "../../core/names.ts";
import type { Walk } from "../../mailbox/files/storage.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import { isRefusal } from "../../mailbox/find/settled-record.ts";
import { freeRefusedId } from "../../mailbox/settle/quarantine.ts";
import type { AcceptedTasks } from "./accepted-tasks.ts";

/** How many names are taken from a listing at a time. */
const WALK_NAMES = 128;
/** About how many confirmed ids are remembered; the oldest are confirmed again when needed. */
const CONFIRMED_MAX = 8192;
const RESULT_END = resultName("");
const ERROR_END = errorName("");

/**
 * Knows which ids have settled. It keeps one number per id, so that a million ids cost little memory. Two ids may have the same number,
 * so a match counts only when a walk of the trays has found the record. It reads in slices and changes nothing.
 */
export class FinishedIds {
  private hashes = new HashSet();
  /** The set that the present walk builds: ids that it does not meet (swept, retried) are forgotten. */
  private next: HashSet | undefined;
  private walk: Walk | undefined;
  private todo: ("outbox" | "failed")[] = [];
  private isWalkWanted = true;
  /** A tray could not be listed completely: an id that was not found may still be there. */
  private isTorn = false;
  /** Ids (folded) that the present walk looks for, and those that wait for the next one. */
  private suspects = new Set<string>();
  private newSuspects = new Set<string>();
  private readonly confirmed = new RecentPaths();
  /** True once everything that had settled at the start is known. */
  isComplete = false;

  constructor(
    private readonly trays: Trays,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** True while a slice of a walk waits to be done. */
  get hasWork(): boolean {
    return this.next !== undefined || this.isWalkWanted;
  }

  /**
   * Adds the id of a task that has settled, or may have settled.
   * @param path its record, if it is known to be there: then no walk must find it
   */
  add(id: string, path?: string): void {
    const key = foldId(id);
    this.note(key);
    // The walk may have passed the place of its record already.
    this.suspects.delete(key);
    if (path === undefined) this.confirmed.delete(key);
    else this.confirmed.set(key, path);
  }

  /**
   * Whether outbox or failed has a record for this id, ignoring case. "unsure": a walk that this question starts must find out
   * first; ask again.
   */
  has(id: string): boolean | "unsure" {
    const key = foldId(id);
    if (!this.hashes.has(hashOf(key))) return false;
    const path = this.confirmed.get(key);
    if (path !== undefined) {
      if (this.trays.storage.look(path) !== undefined) return true;
      this.confirmed.delete(key);
    }
    if (!this.suspects.has(key)) {
      this.newSuspects.add(key);
      this.isWalkWanted = true;
    }
    return "unsure";
  }

  /** Whether outbox has a result for this id, ignoring case. False also while a walk still looks for it: ask again. */
  hasResult(id: string): boolean {
    const isResult = (path = ""): boolean => dirname(path) === this.trays.outbox;
    const known = this.confirmed.get(foldId(id));
    // An error record needs no look: `add` forgets it when the task settles again.
    if (known !== undefined && !isResult(known)) return false;
    return this.has(id) === true && isResult(this.confirmed.get(foldId(id)));
  }

  /** The id as it is spelled in the name of its error record; undefined when there is none, or while a walk still looks for it: ask again. */
  failedAs(id: string): string | undefined {
    const path = this.has(id) === true ? (this.confirmed.get(foldId(id)) ?? "") : "";
    return dirname(path) === this.trays.failed ? parseErrorName(basename(path)) : undefined;
  }

  /** Continues the walk until `untilMs` (monotonic), or until there is nothing to do. */
  work(untilMs: number): void {
    const { clock } = this.trays;
    while (this.hasWork && clock.monotonicMs() < untilMs) {
      if (this.next === undefined) this.begin();
      this.slice();
    }
  }

  close(): void {
    this.walk?.close();
    this.walk = undefined;
  }

  private note(key: string): void {
    const hash = hashOf(key);
    this.hashes.add(hash);
    this.next?.add(hash);
  }

  private begin(): void {
    this.isWalkWanted = false;
    this.isTorn = false;
    this.next = new HashSet();
    this.todo = ["outbox", "failed"];
    this.suspects = this.newSuspects;
    this.newSuspects = new Set();
  }

  private slice(): void {
    const tray = this.todo[0];
    if (tray === undefined) {
      this.end();
      return;
    }
    try {
      this.walk ??= this.trays.storage.walk(this.trays[tray]);
      const names = this.walk.next(WALK_NAMES);
      for (const name of names) this.meet(tray, name);
      if (names.length > 0) return;
    } catch (error) {
      if (systemCode(error) !== "ENOENT") {
        this.isTorn = true;
        this.onError(error);
      }
    }
    this.close();
    this.todo.shift();
  }

  private meet(tray: "outbox" | "failed", name: string): void {
    const ending = tray === "outbox" ? RESULT_END : ERROR_END;
    const id = name.endsWith(ending) ? name.slice(0, -ending.length) : "";
    // The record of a refused file has a name that no id can have, or is recognized below.
    if (!isId(id)) return;
    const key = foldId(id);
    this.note(key);
    if (!this.suspects.has(key)) return;
    const path = join(this.trays[tray], name);
    if (tray === "failed" && isRefusal(this.trays, path)) return;
    this.confirmed.set(key, path);
  }

  private end(): void {
    this.isComplete = true;
    if (!this.isTorn) {
      this.hashes = this.next ?? this.hashes;
      // The walk met no record of the id, or only a refusal: the id is free until a task settles under it.
      for (const key of this.suspects)
        if (!this.confirmed.has(key)) this.hashes.delete(hashOf(key));
    }
    this.next = undefined;
    this.suspects = new Set();
  }
}

/** The path of a record by folded id. When the newer half of the room is full, the older half is forgotten. */
class RecentPaths {
  private recent = new Map<string, string>();
  private older = new Map<string, string>();

  get(key: string): string | undefined {
    return this.recent.get(key) ?? this.older.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  set(key: string, path: string): void {
    if (this.recent.size >= CONFIRMED_MAX / 2) {
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(key, path);
  }

  delete(key: string): void {
    this.recent.delete(key);
    this.older.delete(key);
  }
}

/** A set of positive integers in one flat array: open addressing, at most half full. */
class HashSet {
  private slots = new Float64Array(1024);
  private size = 0;

  has(hash: number): boolean {
    return this.slots[this.find(hash)] === hash;
  }

  add(hash: number): void {
    const at = this.find(hash);
    if (this.slots[at] === hash) return;
    this.slots[at] = hash;
    this.size++;
    if (this.size * 2 <= this.slots.length) return;
    const old = this.slots;
    this.slots = new Float64Array(old.length * 2);
    for (const each of old) if (each !== 0) this.slots[this.find(each)] = each;
  }

  delete(hash: number): void {
    let at = this.find(hash);
    if (this.slots[at] !== hash) return;
    this.slots[at] = 0;
    this.size--;
    // Numbers that follow it without a gap may have to move up.
    const mask = this.slots.length - 1;
    for (at = (at + 1) & mask; this.slots[at] !== 0; at = (at + 1) & mask) {
      const each = this.slots[at] ?? 0;
      this.slots[at] = 0;
      this.slots[this.find(each)] = each;
    }
  }

  /** The position of this number, or the free position where it belongs. */
  private find(hash: number): number {
    const mask = this.slots.length - 1;
    let at = hash % this.slots.length;
    while (this.slots[at] !== 0 && this.slots[at] !== hash) at = (at + 1) & mask;
    return at;
  }
}

/** 53 bits, never 0. Among a million ids two have the same number in one of ten thousand mailboxes; that only costs one walk. */
function hashOf(text: string): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 4294967296 * (2097151 & low) + (high >>> 0) + 1;
}

/** Answers whether files of an id exist. */
export interface IdLooks {
  /** Whether a program that knows only the four trays has claimed it. */
  hasPlainClaim(id: string): boolean;
  hasResult(id: string): boolean;
}

/** Answers whether an id is free. */
export class IdProbe {
  /** Ids whose record in failed/ is about a refused file: the record moves aside when a task with the id is accepted. */
  private readonly refused = new Set<string>();
  private readonly singleLooks: IdLooks = {
    hasPlainClaim: (id) => this.isThere(this.trays.processing, `${id}.json`),
    hasResult: (id) => this.isThere(this.trays.outbox, resultName(id)),
  };

  constructor(
    private readonly trays: Trays,
    private readonly accepted: AcceptedTasks,
    private readonly finishedIds: FinishedIds,
  ) {}

  /**
   * Whether this id (ignoring case) is being worked on or has settled. "unsure": that is not known yet, ask again.
   * @param looks left out: each name is looked for
   */
  isTaken(id: string, looks: IdLooks = this.singleLooks): boolean | "unsure" {
    if (this.accepted.has(id)) return true;
    // A foreign program's claim may be there before a listing has shown it.
    if (looks.hasPlainClaim(id) || looks.hasResult(id)) return true;
    const failed = pathIn(this.trays.failed, errorName(id));
    if (this.trays.storage.look(failed) !== undefined) {
      if (!isRefusal(this.trays, failed)) return true;
      this.refused.add(id);
    }
    return this.finishedIds.has(id);
  }

  /** Call it before this id, which is not taken, leaves the inbox: a refused file may have the name of its record. */
  freeRefused(id: string): void {
    if (this.refused.delete(id)) freeRefusedId(this.trays, id);
  }

  /** Whether results of this id were left without a record: a program removed only the record. They must not count for another batch. */
  hasLeftResults(id: string): boolean {
    const { outbox, failed } = this.trays;
    return [outbox, failed].some((dir) => this.isThere(dir, resultsName(id)));
  }

  private isThere(dir: string, name: string): boolean {
    return this.trays.storage.look(pathIn(dir, name)) !== undefined;
  }
}
