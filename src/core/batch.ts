/** What is counted of a batch, and the set of its lines that are done. Pure. */

/** The counts of a batch: of its lines that have a result. */
export interface BatchCounts {
  /** Lines with a result; blank lines are none. */
  lines: number;
  completed: number;
  /** Lines that failed for good, the bad ones among them. */
  failures: number;
  /** Lines that are no task. */
  bad: number;
}

/** `5 of 9 lines failed`; undefined when none did. */
export function failedLinesText(counts: BatchCounts | undefined): string | undefined {
  if (counts === undefined || !(counts.failures > 0)) return undefined;
  return `${counts.failures} of ${counts.lines} ${counts.lines === 1 ? "line" : "lines"} failed`;
}

/** What a running batch shows of itself: `runs/<run>/batch.json`. */
export interface BatchProgress extends BatchCounts {
  running: number;
  /** Lines that wait for their next run. */
  waiting: number;
  /** Of the batch file, up to where its lines were taken. */
  bytes_read: number;
  bytes: number;
  /** ISO 8601. */
  updated_at: string;
}

export function noCounts(): BatchCounts {
  return { lines: 0, completed: 0, failures: 0, bad: 0 };
}

/**
 * What runs at the moment, each in a place that is used again. A Set would do, but each of its tables that grew old keeps
 * alive all later ones with whatever ran then: half of what a fast batch allocates would have to be copied.
 */
export class Slots<T> {
  private readonly places: (T | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.places.length - this.free.length;
  }

  /** @returns its place */
  add(item: T): number {
    const at = this.free.pop() ?? this.places.length;
    this.places[at] = item;
    return at;
  }

  remove(at: number): void {
    this.places[at] = undefined;
    this.free.push(at);
  }

  list(): T[] {
    return this.places.filter((item) => item !== undefined);
  }
}

/** Line numbers (from 1), one bit each. */
export class LineSet {
  private bits = new Uint8Array(1024);

  has(line: number): boolean {
    return ((this.bits[line >>> 3] ?? 0) & (1 << (line & 7))) !== 0;
  }

  add(line: number): void {
    const at = line >>> 3;
    if (at >= this.bits.length) {
      const grown = new Uint8Array(Math.max(at + 1, this.bits.length * 2));
      grown.set(this.bits);
      this.bits = grown;
    }
    this.bits[at] = (this.bits[at] ?? 0) | (1 << (line & 7));
  }
}
