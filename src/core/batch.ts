/** Counts the lines of a batch, and holds the set of lines that are done. Pure. */

/** How many lines of a batch have a result, and which. */
export interface BatchCounts {
  /** Lines with a result. Blank lines are not counted. */
  lines: number;
  completed: number;
  /** Lines that failed for good, `bad` included. */
  failures: number;
  /** Lines that are not valid tasks. */
  bad: number;
}

/** `5 of 9 lines failed`; undefined when no line failed. */
export function failedLinesText(counts: BatchCounts | undefined): string | undefined {
  if (counts === undefined || !(counts.failures > 0)) return undefined;
  return `${counts.failures} of ${counts.lines} ${counts.lines === 1 ? "line" : "lines"} failed`;
}

/** The progress of a running batch: `runs/<run>/batch.json`. */
export interface BatchProgress extends BatchCounts {
  running: number;
  /** Lines that wait for their next run. */
  waiting: number;
  /** How many bytes of the batch file were read so far. */
  bytes_read: number;
  bytes: number;
  /** ISO 8601. */
  updated_at: string;
}

export function noCounts(): BatchCounts {
  return { lines: 0, completed: 0, failures: 0, bad: 0 };
}

/**
 * The lines that run now, each in a reusable place. A Set would work, but V8 replaces a Set's table again and again, and each
 * old table keeps the later ones and their items in memory: the garbage collector would copy half of what a fast batch allocates.
 */
export class Slots<T> {
  private readonly places: (T | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.places.length - this.free.length;
  }

  /** @returns the place of the item, for `remove` */
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
