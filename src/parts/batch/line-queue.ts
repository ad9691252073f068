/** The lines of a batch that have to run: those that are due for their next run first, then the rest of the file. */
import { Heap } from "../../core/heap.ts";
import { isBlank, type Line, type LineReader } from "../../mailbox/submit/batch-lines.ts";
import type { LineRun, LineRuns } from "./line-run.ts";

/** How many lines may wait for their next run. No new line starts beyond that, so that memory stays bounded. */
const WAITING_MAX = 4096;
/** The clock is read after this many lines that need no run, and after each piece of the file. */
const LINES_PER_LOOK = 16;

interface LineSource {
  reader: LineReader;
  runs: LineRuns;
  /** Numbers of lines that have a result. */
  done: { has(line: number): boolean };
  refuse(line: number, why: string): void;
  /** Called after some lines that need no run: other work of the process may come first. */
  onLook(): void;
}

export class LineQueue {
  private isAtEnd = false;
  /** A line that waits because too many others run. */
  private head: LineRun | undefined;
  private readonly waiting = new Heap<LineRun>((a, b) => a.dueMs - b.dueMs);
  /** Lines since the clock was last read, and the position in the file at that time. */
  private unlookedCount = 0;
  private lookedAtByte = 0;

  constructor(private readonly source: LineSource) {}

  /** How many lines wait for their next run. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  get isEmpty(): boolean {
    return this.isAtEnd && this.head === undefined && this.waiting.size === 0;
  }

  /**
   * Bad lines on the way are refused. Undefined: no line can start now, or `mayGoOn` has become false.
   * @param nowMs monotonic @throws what the reader throws
   */
  take(nowMs: number, mayGoOn: () => boolean): LineRun | undefined {
    const { head } = this;
    if (head !== undefined) {
      this.head = undefined;
      return head;
    }
    const due = this.waiting.peek();
    if (due !== undefined && due.dueMs <= nowMs) {
      this.waiting.pop();
      return due;
    }
    if (this.waiting.size >= WAITING_MAX) return undefined;
    while (!this.isAtEnd && mayGoOn()) {
      const line = this.nextLine();
      const run = line && this.source.runs.begin(line);
      if (typeof run === "object") return run;
      if (line !== undefined && run !== undefined) this.source.refuse(line.number, run);
      this.noteLine();
    }
    return undefined;
  }

  /** Puts back a line for which there is no room: it is the next one. */
  putBack(line: LineRun): void {
    this.head = line;
  }

  /** Adds a line that runs again at its `dueMs`. */
  addRetry(line: LineRun): void {
    this.waiting.push(line);
  }

  /** The next line of the file. Undefined when it is not read yet, is blank, or has a result already. */
  private nextLine(): Line | undefined {
    const line = this.source.reader.next();
    if (line === undefined) this.isAtEnd = true;
    if (line === undefined || line === "later") return undefined;
    if (this.source.done.has(line.number)) return undefined;
    return line.text === undefined || !isBlank(line.text) ? line : undefined;
  }

  /** To skip one line is little work, but to read the file up to it may take long. So this checks both. */
  private noteLine(): void {
    const { position } = this.source.reader;
    this.unlookedCount++;
    if (this.unlookedCount < LINES_PER_LOOK && position === this.lookedAtByte) return;
    this.unlookedCount = 0;
    this.lookedAtByte = position;
    this.source.onLook();
  }
}
