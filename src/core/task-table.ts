/**
 * Holds ordinary waiting tasks in the order in which they will run. It uses flat arrays: a million tasks need about 80 bytes
 * each, and give the garbage collector no work. Pure. Ids are ASCII (see names.ts).
 */
import type { Told } from "./waiting-task.ts";

export interface OrdinaryTask {
  id: string;
  /** Number of the run that comes next (from 1). */
  attempt: number;
  /** Higher first. */
  priority: number;
  /** Unix seconds; older first. */
  createdAt: number;
  /** Epoch ms; earlier first. */
  arrivedMs: number;
  agentId: string;
  /** What its event `selected` tells. */
  told?: Told;
}

/** The number of a row. A task has the same row for as long as it waits. */
export type Row = number;

/** A binary heap with the rows of one agent. The task that runs first is on top. */
interface RowHeap {
  rows: Int32Array;
  count: number;
}

const ROWS_MIN = 1024;
const HEAP_ROWS_MIN = 64;
const ID_BYTES_MIN = 16 * 1024;
const NOWHERE = -1;

export class TaskTable {
  private readonly agents: string[] = [];
  private readonly agentNumbers = new Map<string, number>();

  // One value for each row.
  private priorities = new Int32Array(ROWS_MIN);
  private createdAts = new Float64Array(ROWS_MIN);
  private arrivals = new Float64Array(ROWS_MIN);
  private attempts = new Uint16Array(ROWS_MIN);
  private agentOf = new Uint16Array(ROWS_MIN);
  private scans = new Uint32Array(ROWS_MIN);
  private hashes = new Int32Array(ROWS_MIN);
  private idLengths = new Uint8Array(ROWS_MIN);
  /** Where the id of the row begins in `ids`. For a free row: the next free row. */
  private idAts = new Int32Array(ROWS_MIN);
  /** The place of the row in its agent's heap. For a free row: NOWHERE. */
  private heapAts = new Int32Array(ROWS_MIN).fill(NOWHERE);
  /** Only for tasks that have something to tell. */
  private readonly told = new Map<Row, Told>();
  private rowCount = 0;
  private freeRow: Row = NOWHERE;

  /** One heap for each agent, by its number, so that all tasks of an agent that may not start are skipped at once. */
  private readonly heaps: RowHeap[] = [];
  private count = 0;
  /** A hash table from ids to rows, with open addressing, at most half full. Holds the row plus one; 0 is an empty place. */
  private index = new Int32Array(2 * ROWS_MIN);

  private ids = Buffer.alloc(ID_BYTES_MIN);
  private idsEnd = 0;
  private idBytesFree = 0;

  get size(): number {
    return this.count;
  }

  /** The row of the task with this id, or -1. Upper and lower case are the same. */
  find(id: string): Row {
    const hash = hashOf(id);
    const mask = this.index.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const row = (this.index[at] ?? 0) - 1;
      if (row === NOWHERE) return NOWHERE;
      if (this.hashes[row] === hash && this.hasId(row, id)) return row;
    }
  }

  /** Adds a task. The table must not hold a task with this id. */
  add(task: OrdinaryTask): Row {
    const row = this.newRow();
    this.priorities[row] = task.priority;
    this.createdAts[row] = task.createdAt;
    this.arrivals[row] = task.arrivedMs;
    this.attempts[row] = task.attempt;
    this.agentOf[row] = this.agentNumber(task.agentId);
    this.scans[row] = 0;
    this.hashes[row] = hashOf(task.id);
    this.keepId(row, task.id);
    if (task.told !== undefined) this.told.set(row, task.told);
    if (2 * (this.count + 1) > this.index.length) this.growIndex();
    this.enter(row);
    const heap = this.heapOf(row);
    if (heap.count === heap.rows.length)
      heap.rows = grown(heap.rows, new Int32Array(2 * heap.count));
    this.rise(heap, row, heap.count++);
    this.count++;
    return row;
  }

  remove(row: Row): void {
    this.leave(row);
    this.count--;
    const heap = this.heapOf(row);
    const last = heap.rows[--heap.count] ?? NOWHERE;
    const at = this.heapAts[row] ?? NOWHERE;
    this.heapAts[row] = NOWHERE;
    if (last !== row) this.settleAt(heap, last, at);
    this.idBytesFree += this.idLengths[row] ?? 0;
    if (this.told.size > 0) this.told.delete(row);
    this.idAts[row] = this.freeRow;
    this.freeRow = row;
    // No task waits, so the memory of a large backlog is freed.
    if (this.count === 0 && this.rowCount > ROWS_MIN) Object.assign(this, new TaskTable());
  }

  /** The row of the task that runs first, or -1. @param mayStart whether tasks of this agent may start */
  first(mayStart?: (agentId: string) => boolean): Row {
    let first = NOWHERE;
    for (let agent = 0; agent < this.heaps.length; agent++) {
      const heap = this.heaps[agent];
      if (heap === undefined || heap.count === 0) continue;
      const row = heap.rows[0] ?? NOWHERE;
      if (first !== NOWHERE && !this.isBefore(row, first)) continue;
      if (mayStart === undefined || mayStart(this.agents[agent] ?? "")) first = row;
    }
    return first;
  }

  task(row: Row): OrdinaryTask {
    const task: OrdinaryTask = {
      id: this.idOf(row),
      attempt: this.attempts[row] ?? 0,
      priority: this.priorities[row] ?? 0,
      createdAt: this.createdAts[row] ?? 0,
      arrivedMs: this.arrivals[row] ?? 0,
      agentId: this.agents[this.agentOf[row] ?? 0] ?? "",
    };
    const told = this.told.get(row);
    if (told !== undefined) task.told = told;
    return task;
  }

  idOf(row: Row): string {
    const from = this.idAts[row] ?? 0;
    return this.ids.toString("latin1", from, from + (this.idLengths[row] ?? 0));
  }

  markSeen(row: Row, scan: number): void {
    this.scans[row] = scan;
  }

  /** Ids of the tasks that this scan did not find. */
  *unseen(scan: number): IterableIterator<string> {
    for (let row = 0; row < this.rowCount; row++) {
      if (this.heapAts[row] !== NOWHERE && (this.scans[row] ?? 0) < scan) yield this.idOf(row);
    }
  }

  // ── rows and ids ────────────────────────────────────────────────────────────────────────────────────────────────

  private newRow(): Row {
    if (this.freeRow !== NOWHERE) {
      const row = this.freeRow;
      this.freeRow = this.idAts[row] ?? NOWHERE;
      return row;
    }
    if (this.rowCount === this.heapAts.length) this.growRows();
    return this.rowCount++;
  }

  private growRows(): void {
    const rows = 2 * this.heapAts.length;
    this.priorities = grown(this.priorities, new Int32Array(rows));
    this.createdAts = grown(this.createdAts, new Float64Array(rows));
    this.arrivals = grown(this.arrivals, new Float64Array(rows));
    this.attempts = grown(this.attempts, new Uint16Array(rows));
    this.agentOf = grown(this.agentOf, new Uint16Array(rows));
    this.scans = grown(this.scans, new Uint32Array(rows));
    this.hashes = grown(this.hashes, new Int32Array(rows));
    this.idLengths = grown(this.idLengths, new Uint8Array(rows));
    this.idAts = grown(this.idAts, new Int32Array(rows));
    this.heapAts = grown(this.heapAts, new Int32Array(rows).fill(NOWHERE));
  }

  private keepId(row: Row, id: string): void {
    if (this.idsEnd + id.length > this.ids.length) this.makeRoomForIds(id.length);
    this.idAts[row] = this.idsEnd;
    this.idLengths[row] = id.length;
    this.ids.write(id, this.idsEnd, "latin1");
    this.idsEnd += id.length;
  }

  /** Closes the gaps between the ids, and enlarges the buffer when that is not enough. The caller's row has no id yet. */
  private makeRoomForIds(bytes: number): void {
    const kept = this.idsEnd - this.idBytesFree;
    const old = this.ids;
    this.ids = Buffer.alloc(2 * (kept + bytes) > old.length ? 2 * old.length : old.length);
    this.idsEnd = 0;
    this.idBytesFree = 0;
    for (let row = 0; row < this.rowCount; row++) {
      if (this.heapAts[row] === NOWHERE) continue;
      const from = this.idAts[row] ?? 0;
      const length = this.idLengths[row] ?? 0;
      old.copy(this.ids, this.idsEnd, from, from + length);
      this.idAts[row] = this.idsEnd;
      this.idsEnd += length;
    }
  }

  private hasId(row: Row, id: string): boolean {
    if (this.idLengths[row] !== id.length) return false;
    const from = this.idAts[row] ?? 0;
    for (let i = 0; i < id.length; i++)
      if (folded(this.ids[from + i] ?? 0) !== folded(id.charCodeAt(i))) return false;
    return true;
  }

  private agentNumber(agentId: string): number {
    let number = this.agentNumbers.get(agentId);
    if (number === undefined) {
      number = this.agents.push(agentId) - 1;
      this.agentNumbers.set(agentId, number);
      this.heaps.push({ rows: new Int32Array(HEAP_ROWS_MIN), count: 0 });
    }
    return number;
  }

  // ── the index ───────────────────────────────────────────────────────────────────────────────────────────────────

  private enter(row: Row): void {
    const mask = this.index.length - 1;
    let at = (this.hashes[row] ?? 0) & mask;
    while (this.index[at] !== 0) at = (at + 1) & mask;
    this.index[at] = row + 1;
  }

  private leave(row: Row): void {
    const mask = this.index.length - 1;
    let at = (this.hashes[row] ?? 0) & mask;
    while (this.index[at] !== row + 1) at = (at + 1) & mask;
    this.index[at] = 0;
    // The removed row left an empty place, and rows in the places after it may have to move there.
    for (at = (at + 1) & mask; this.index[at] !== 0; at = (at + 1) & mask) {
      const other = (this.index[at] ?? 0) - 1;
      this.index[at] = 0;
      this.enter(other);
    }
  }

  private growIndex(): void {
    this.index = new Int32Array(2 * this.index.length);
    for (let row = 0; row < this.rowCount; row++)
      if (this.heapAts[row] !== NOWHERE) this.enter(row);
  }

  // ── the heap ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The order of `compareTasks`. */
  private isBefore(a: Row, b: Row): boolean {
    const priority = (this.priorities[b] ?? 0) - (this.priorities[a] ?? 0);
    if (priority !== 0) return priority < 0;
    const age = (this.createdAts[a] ?? 0) - (this.createdAts[b] ?? 0);
    if (age !== 0) return age < 0;
    const arrival = (this.arrivals[a] ?? 0) - (this.arrivals[b] ?? 0);
    if (arrival !== 0) return arrival < 0;
    const length = this.idLengths[a] ?? 0;
    const longer = length - (this.idLengths[b] ?? 0);
    if (longer !== 0) return longer < 0;
    const fromA = this.idAts[a] ?? 0;
    const fromB = this.idAts[b] ?? 0;
    for (let i = 0; i < length; i++) {
      const difference = (this.ids[fromA + i] ?? 0) - (this.ids[fromB + i] ?? 0);
      if (difference !== 0) return difference < 0;
    }
    return false;
  }

  private heapOf(row: Row): RowHeap {
    return this.heaps[this.agentOf[row] ?? 0] as RowHeap;
  }

  /** Puts a row into the place of a removed one, and moves it up or down to where it belongs. */
  private settleAt(heap: RowHeap, row: Row, at: number): void {
    this.rise(heap, row, at);
    this.sink(heap, row, this.heapAts[row] ?? at);
  }

  private rise({ rows }: RowHeap, row: Row, from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = rows[parent] ?? 0;
      if (!this.isBefore(row, above)) break;
      this.put(rows, above, at);
      at = parent;
    }
    this.put(rows, row, at);
  }

  private sink({ rows, count }: RowHeap, row: Row, from: number): void {
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= count) break;
      if (child + 1 < count && this.isBefore(rows[child + 1] ?? 0, rows[child] ?? 0)) child++;
      const below = rows[child] ?? 0;
      if (!this.isBefore(below, row)) break;
      this.put(rows, below, at);
      at = child;
    }
    this.put(rows, row, at);
  }

  private put(rows: Int32Array, row: Row, at: number): void {
    rows[at] = row;
    this.heapAts[row] = at;
  }
}

function grown<A extends { set(from: A): void }>(from: A, to: A): A {
  to.set(from);
  return to;
}

/** An ASCII character in lower case. */
function folded(code: number): number {
  return code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
}

function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ folded(id.charCodeAt(i)), 0x01000193);
  return (hash ^ (hash >>> 15)) | 0;
}
