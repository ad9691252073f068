/**
 * Holds the waiting tasks in the order in which they run. Pure: it reads no clock and no files. Ordinary tasks are rows of a
 * table, so that a million of them use about 80 bytes each. Choosing one of n tasks takes log n steps.
 */
import { Heap } from "./heap.ts";
import { type Entry, Lanes, type MayStart, type WaitState } from "./lanes.ts";
import { foldId, inboxName } from "./names.ts";
import { type Row, TaskTable } from "./task-table.ts";
import { compareTasks, leaveGroup, readNeeds, type WaitingTask } from "./waiting-task.ts";

export type Which = "all" | "planners" | "finishing";

const NO_ROW: Row = -1;

export class Backlog {
  /** Runnable tasks whose fields all fit into a row of the table. */
  private readonly ordinary = new TaskTable();
  private readonly byId = new Map<string, Entry>();
  private readonly runnable = new Lanes();
  private readonly planners = new Lanes();
  private readonly delayedByWall = new Heap<Entry>(
    (a, b) => (a.task.notBeforeMs ?? 0) - (b.task.notBeforeMs ?? 0),
  );
  private readonly delayedByClock = new Heap<Entry>(
    (a, b) => (a.task.dueMs ?? 0) - (b.task.dueMs ?? 0),
  );
  /** Blocked entries by the folded id that they wait for. `id` keeps the spelling of one of these tasks. */
  private readonly dependents = new Map<string, { id: string; waiting: Set<Entry> }>();
  /** Ids that tasks wait for since `takeNewlyAwaited` was called, by folded id. */
  private readonly newlyAwaited = new Map<string, string>();
  /** How many waiting tasks depend on each folded id. Completed dependencies count, too. */
  private readonly needed = new Map<string, number>();
  private readonly counts: Record<WaitState, number> = {
    runnable: 0,
    delayed: 0,
    blocked: 0,
    unmatched: 0,
  };

  /** The waiting tasks that have a group or needs, by both: see `limited`. */
  private readonly limitedCounts = new Map<string, number>();

  /** How many of the delayed tasks are held at a gate, where they also have a short time before they may start. */
  private heldCount = 0;

  /** @param isLimited true if only some tasks of this group may be in work at once. Only such a group gets its own lane */
  constructor(private readonly isLimited: (group: string) => boolean = () => true) {}

  /** Adds a task, or replaces the task with the same id. */
  add(task: WaitingTask, nowWallMs: number, nowMs: number): WaitState {
    this.remove(task.id);
    if (task.group !== undefined && !this.isLimited(task.group)) leaveGroup(task);
    if (isOrdinary(task)) {
      this.ordinary.add(task);
      this.counts.runnable++;
      return "runnable";
    }
    const entry: Entry = {
      task,
      state: "runnable",
      unmetCount: task.unmet?.length ?? 0,
      isGone: false,
      seenInScan: 0,
    };
    this.byId.set(foldId(task.id), entry);
    if (task.owns !== undefined) this.ownerCount++;
    if (isHeavy(task)) this.heavyCount++;
    if (task.finishing !== undefined) this.finishingCount++;
    for (const id of task.dependencies ?? []) addTo(this.needed, foldId(id), 1);
    entry.state = this.stateOf(entry, nowWallMs, nowMs);
    this.addCount(entry, 1);
    this.place(entry);
    return entry.state;
  }

  get(id: string): WaitingTask | undefined {
    const row = this.ordinary.find(id);
    return row === NO_ROW ? this.byId.get(foldId(id))?.task : this.taskAt(row);
  }

  stateOfId(id: string): WaitState | undefined {
    return this.ordinary.find(id) === NO_ROW ? this.byId.get(foldId(id))?.state : "runnable";
  }

  /** Removes a task that was accepted, moved away or refused. */
  remove(id: string): void {
    const row = this.ordinary.find(id);
    if (row !== NO_ROW) {
      this.ordinary.remove(row);
      this.counts.runnable--;
      return;
    }
    const key = foldId(id);
    const entry = this.byId.get(key);
    if (entry === undefined) return;
    this.byId.delete(key);
    this.discard(entry);
  }

  /** Removes and returns the task that runs next. See `best`. */
  takeBest(which: Which = "all", mayStart?: MayStart): WaitingTask | undefined {
    const best = this.best(which, mayStart);
    if (best !== undefined) this.remove(best.id);
    return best;
  }

  /**
   * The task that runs next. A lane that may not start is skipped as a whole, however many tasks it has.
   * @param which choose among all tasks, among planners, or among those that finish other work
   * @param mayStart whether the tasks of this lane may start; when left out, all may
   */
  best(which: Which = "all", mayStart?: MayStart): WaitingTask | undefined {
    const planner = which === "finishing" ? undefined : this.planners.first(mayStart)?.task;
    if (which === "planners") return planner;
    const row = which === "finishing" ? NO_ROW : this.ordinary.first(mayStart);
    const other = this.runnable.first(mayStart)?.task;
    // What finishes other work is the first of all.
    if (which === "finishing") return other?.finishing === undefined ? undefined : other;
    const best = earlier(planner, other);
    return row === NO_ROW ? best : earlier(best, this.taskAt(row));
  }

  /** How many waiting tasks own files. */
  ownerCount = 0;

  /** How many waiting tasks finish other work. */
  finishingCount = 0;

  /** How many waiting tasks take more than one slot of their group. */
  heavyCount = 0;

  /** The first runnable task of each lane whose tasks own files. Each different list of files has its own lane. */
  owners(): WaitingTask[] {
    return this.heads().filter((task) => task.owns !== undefined);
  }

  /**
   * The first runnable task of each lane with tasks that need more than an agent, such as a group or a gate. Leaves out tasks that
   * only wait in `processing/` for their next run.
   */
  heads(): WaitingTask[] {
    return [...this.planners.heads(), ...this.runnable.heads()].filter(
      (task) => task.tray === "inbox" || task.gate !== undefined,
    );
  }

  /** How many tasks with a group or limits wait, without those that only wait in `processing/` for their next run. */
  *limited(): IterableIterator<{ group: string; limits: readonly string[]; count: number }> {
    for (const [key, count] of this.limitedCounts) {
      const [group = "", needs] = key.split("\n");
      yield { group, limits: readNeeds(needs).limits, count };
    }
  }

  /** Makes delayed tasks runnable when their time has come. @returns ms until the next one, or undefined without delayed tasks */
  promoteDue(nowWallMs: number, nowMs: number): number | undefined {
    const next = [
      // In this order: a task with both times is delayed by the wall clock first, then by the monotonic clock.
      this.promote(this.delayedByWall, "notBeforeMs", nowWallMs),
      this.promote(this.delayedByClock, "dueMs", nowMs),
    ].filter((ms) => ms !== undefined);
    return next.length === 0 ? undefined : Math.min(...next);
  }

  /** Called when a task or roadmap item has completed. @returns how many tasks are not blocked any more */
  resolveDependency(id: string): number {
    const key = foldId(id);
    const dependents = this.dependents.get(key);
    if (dependents === undefined) return 0;
    this.dependents.delete(key);
    let freed = 0;
    for (const entry of dependents.waiting) {
      if (this.countMet(entry)) freed++;
    }
    return freed;
  }

  /** One more dependency is met. @returns whether it was the last one */
  private countMet(entry: Entry): boolean {
    if (entry.isGone) return false;
    entry.unmetCount--;
    if (entry.unmetCount > 0 || entry.state !== "blocked") return false;
    delete entry.task.unmet;
    this.setState(entry, this.stateAfterDependencies(entry));
    return true;
  }

  /**
   * Called when a task or item has ended without completing. Tasks that only need its end stop waiting for it.
   * @returns how many tasks are not blocked any more
   */
  resolveEnd(id: string): number {
    const key = foldId(id);
    const dependents = this.dependents.get(key);
    if (dependents === undefined) return 0;
    let freed = 0;
    for (const entry of dependents.waiting) {
      if (!waitsForEnd(entry, key)) continue;
      dependents.waiting.delete(entry);
      if (this.countMet(entry)) freed++;
    }
    if (dependents.waiting.size === 0) this.dependents.delete(key);
    return freed;
  }

  /** The tasks in the inbox that wait for this id to complete. The caller may remove them while it iterates. */
  *waitersOf(id: string): IterableIterator<Readonly<WaitingTask>> {
    const key = foldId(id);
    for (const entry of this.dependents.get(key)?.waiting ?? [])
      if (!entry.isGone && entry.task.tray === "inbox" && !waitsForEnd(entry, key))
        yield entry.task;
  }

  /** Takes up to `max` ids that tasks wait for since the last call. */
  takeNewlyAwaited(max: number): string[] {
    if (this.newlyAwaited.size === 0) return [];
    const ids: string[] = [];
    for (const [key, id] of this.newlyAwaited) {
      if (ids.length === max) break;
      this.newlyAwaited.delete(key);
      ids.push(id);
    }
    return ids;
  }

  get hasNewlyAwaited(): boolean {
    return this.newlyAwaited.size > 0;
  }

  /** Whether a blocked task waits for this id. */
  isAwaited(id: string): boolean {
    return this.dependents.has(foldId(id));
  }

  /** Ids that blocked tasks wait for. */
  *dependencies(): IterableIterator<string> {
    for (const { id } of this.dependents.values()) yield id;
  }

  /** The dependencies of this task that have not completed. */
  unmetOf(id: string): string[] {
    const entry = this.byId.get(foldId(id));
    const unmet = entry?.task.unmet ?? [];
    return unmet.filter((one) => this.dependents.get(foldId(one))?.waiting.has(entry as Entry));
  }

  /** Whether a waiting task depends on this id. A completed dependency counts, too. */
  isNeeded(id: string): boolean {
    return this.needed.has(foldId(id));
  }

  /** Notes that a scan found this file. @returns false when no file waits under this id, or a different one does */
  see(id: string, file: string, scan: number): boolean {
    const row = this.ordinary.find(id);
    if (row !== NO_ROW) {
      if (file !== inboxName({ id: this.ordinary.idOf(row) })) return false;
      this.ordinary.markSeen(row, scan);
      return true;
    }
    const entry = this.byId.get(foldId(id));
    if (entry?.task.file !== file) return false;
    entry.seenInScan = scan;
    return true;
  }

  /** Inbox tasks that a complete scan did not find. Another program may have moved them away. */
  *unseen(scan: number): IterableIterator<Pick<WaitingTask, "id" | "file">> {
    for (const id of this.ordinary.unseen(scan)) yield { id, file: inboxName({ id }) };
    for (const entry of this.byId.values()) {
      if (entry.task.tray === "inbox" && entry.seenInScan < scan) yield entry.task;
    }
  }

  /** The tasks in this state. Runnable tasks are left out because most of them are rows of the table. */
  *waitingAs(state: "blocked" | "unmatched"): IterableIterator<Readonly<WaitingTask>> {
    if (this.counts[state] === 0) return;
    for (const entry of this.byId.values()) if (entry.state === state) yield entry.task;
  }

  get size(): number {
    return this.byId.size + this.ordinary.size;
  }

  count(state: WaitState): number {
    return this.counts[state];
  }

  /** The tasks that wait only for their time. A task at a gate waits for that gate. */
  get timedCount(): number {
    return this.counts.delayed - this.heldCount;
  }

  /** The tasks at a gate that also have a short time before they may start. */
  *held(): Iterable<WaitingTask> {
    if (this.heldCount === 0) return;
    for (const { task, state } of this.byId.values())
      if (state === "delayed" && task.gate !== undefined) yield task;
  }

  private addCount({ state, task }: Entry, by: 1 | -1): void {
    this.counts[state] += by;
    if (state === "delayed" && task.gate !== undefined) this.heldCount += by;
    if (task.group === undefined && task.needs === undefined) return;
    if (task.tray === "processing" && task.gate === undefined) return;
    addTo(this.limitedCounts, `${task.group ?? ""}\n${task.needs ?? ""}`, by);
  }

  private taskAt(row: Row): WaitingTask {
    const task = this.ordinary.task(row);
    // No spread here: V8 makes a new hidden class for every object that gets members after a spread (4 µs each).
    const waiting: WaitingTask = {
      id: task.id,
      file: inboxName(task),
      tray: "inbox",
      attempt: task.attempt,
      priority: task.priority,
      createdAt: task.createdAt,
      arrivedMs: task.arrivedMs,
      agentId: task.agentId,
      isSelected: false,
    };
    if (task.told !== undefined) waiting.told = task.told;
    return waiting;
  }

  private stateOf({ task, unmetCount }: Entry, nowWallMs: number, nowMs: number): WaitState {
    if (unmetCount > 0) return "blocked";
    if ((task.notBeforeMs ?? 0) > nowWallMs || (task.dueMs ?? 0) > nowMs) return "delayed";
    return task.agentId === undefined ? "unmatched" : "runnable";
  }

  /** A task with a time is delayed even when that time has passed: `promoteDue` compares it with the clock. */
  private stateAfterDependencies({ task }: Entry): WaitState {
    if (task.notBeforeMs !== undefined || task.dueMs !== undefined) return "delayed";
    return task.agentId === undefined ? "unmatched" : "runnable";
  }

  private setState(entry: Entry, state: WaitState): void {
    this.addCount(entry, -1);
    entry.state = state;
    this.addCount(entry, 1);
    this.place(entry);
  }

  private place(entry: Entry): void {
    switch (entry.state) {
      case "runnable":
        (entry.task.isPlanner === true ? this.planners : this.runnable).push(entry);
        return;
      case "delayed":
        (entry.task.notBeforeMs === undefined ? this.delayedByClock : this.delayedByWall).push(
          entry,
        );
        return;
      case "blocked":
        for (const id of entry.task.unmet ?? []) {
          const key = foldId(id);
          const dependents = this.dependents.get(key) ?? { id, waiting: new Set() };
          this.dependents.set(key, dependents);
          dependents.waiting.add(entry);
          this.newlyAwaited.set(key, id);
        }
        return;
      case "unmatched":
        return;
    }
  }

  private promote(
    heap: Heap<Entry>,
    time: "notBeforeMs" | "dueMs",
    nowMs: number,
  ): number | undefined {
    for (;;) {
      const entry = heap.peek();
      if (entry === undefined) return undefined;
      if (entry.isGone || entry.state !== "delayed") {
        heap.pop();
        continue;
      }
      const ms = (entry.task[time] ?? 0) - nowMs;
      if (ms > 0) return ms;
      heap.pop();
      delete entry.task[time];
      this.setState(entry, this.stateAfterDependencies(entry));
    }
  }

  private discard(entry: Entry): void {
    entry.isGone = true;
    if (entry.task.owns !== undefined) this.ownerCount--;
    if (isHeavy(entry.task)) this.heavyCount--;
    if (entry.task.finishing !== undefined) this.finishingCount--;
    this.addCount(entry, -1);
    for (const id of entry.task.dependencies ?? []) addTo(this.needed, foldId(id), -1);
    for (const id of entry.task.unmet ?? []) {
      const key = foldId(id);
      const waiting = this.dependents.get(key)?.waiting;
      waiting?.delete(entry);
      if (waiting?.size === 0) this.dependents.delete(key);
    }
    // The entry stays in its heap until it reaches the top and is dropped. A heap with mostly such entries is rebuilt.
    this.runnable.compact(this.byId.size);
  }
}

function addTo(counts: Map<string, number>, key: string, more: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

function earlier(a: WaitingTask | undefined, b: WaitingTask | undefined): WaitingTask | undefined {
  return a === undefined || (b !== undefined && compareTasks(b, a) < 0) ? b : a;
}

/** True if the task needs only the end of this id (folded), not its success. */
function waitsForEnd({ task }: Entry, key: string): boolean {
  return task.toEnd?.some((id) => foldId(id) === key) === true;
}

/** Whether a row of the table can hold all fields of this task. */
function isOrdinary(task: WaitingTask): task is WaitingTask & { agentId: string } {
  return (
    task.tray === "inbox" &&
    task.agentId !== undefined &&
    task.dependencies === undefined &&
    task.unmet === undefined &&
    task.notBeforeMs === undefined &&
    task.dueMs === undefined &&
    task.isPlanner !== true &&
    task.finishing === undefined &&
    task.group === undefined &&
    task.owns === undefined &&
    task.needs === undefined &&
    task.sequence === undefined &&
    !task.isSelected &&
    task.file === inboxName(task)
  );
}

function isHeavy({ needs }: WaitingTask): boolean {
  return needs !== undefined && readNeeds(needs).weight > 1;
}
