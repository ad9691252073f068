/** The runnable tasks by lanes: see `laneOf`. A lane that may not start is skipped as a whole, however many tasks it has. Pure. */
import { Heap } from "./heap.ts";
import { compareTasks, laneOf, type WaitingTask } from "./waiting-task.ts";

export type WaitState = "runnable" | "delayed" | "blocked" | "unmatched";

/** A waiting task, and where it stands. */
export interface Entry {
  task: WaitingTask;
  state: WaitState;
  unmetCount: number;
  isGone: boolean;
  seenInScan: number;
}

export type MayStart = (lane: string) => boolean;

/** Runnable entries, in one heap for each lane, so that a lane that may not start is skipped at once. */
export class Lanes {
  private readonly heaps = new Map<string, Heap<Entry>>();

  push(entry: Entry): void {
    const lane = laneOf(entry.task);
    let heap = this.heaps.get(lane);
    if (heap === undefined) {
      heap = new Heap<Entry>((a, b) => compareTasks(a.task, b.task));
      this.heaps.set(lane, heap);
    }
    heap.push(entry);
  }

  /** The entry that runs first among the lanes that may start. */
  first(mayStart?: MayStart): Entry | undefined {
    let first: Entry | undefined;
    for (const [lane, heap] of this.heaps) {
      const entry = firstRunnable(heap);
      if (entry === undefined) continue;
      if (first !== undefined && compareTasks(entry.task, first.task) >= 0) continue;
      if (mayStart === undefined || mayStart(lane)) first = entry;
    }
    return first;
  }

  /** The first runnable task of each lane. */
  heads(): WaitingTask[] {
    return [...this.heaps.values()].flatMap((heap) => firstRunnable(heap)?.task ?? []);
  }

  /** See `Heap.compact`. */
  compact(expectedSize: number): void {
    for (const heap of this.heaps.values()) heap.compact(isRunnable, expectedSize);
  }
}

function isRunnable(entry: Entry): boolean {
  return !entry.isGone && entry.state === "runnable";
}

/** The first entry that can run. Removed entries above it are dropped from the heap. */
function firstRunnable(heap: Heap<Entry>): Entry | undefined {
  for (;;) {
    const entry = heap.peek();
    if (entry === undefined || isRunnable(entry)) return entry;
    heap.pop();
  }
}
