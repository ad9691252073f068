/** Collects what the machine refuses this pool now. It is written to supervisor.json, where `status` and `doctor` find it. */
import type { Clock } from "../../core/clock.ts";
import type { Trouble } from "../../core/documents.ts";

/** A waiting task whose trouble is not reported again within its delay plus this time (ms) is forgotten. */
const OVERDUE_MS = 60_000;
/** While memory is short, the next death because of it comes within this time (ms). */
const DEATH_MS = 60_000;
/** How many troubles are named, and how many tasks are remembered. */
const NAMED_MAX = 5;
const TASKS_MAX = 1000;

export class Shortages {
  private readonly standing = new Map<string, Trouble & { untilMs: number }>();
  /** The trouble that keeps a task waiting, by task id, and until when the note is valid (monotonic ms). */
  private readonly tasks = new Map<string, { what: string; untilMs: number }>();

  constructor(private readonly clock: Clock) {}

  /** @param key what the trouble concerns */
  note(key: string, what: string, todo: string): void {
    this.standing.set(key, { what, do: todo, untilMs: Number.POSITIVE_INFINITY });
  }

  /** Notes a trouble that shows only in deaths: it is over when no further death comes. */
  noteDeath(key: string, what: string, todo: string): void {
    this.standing.set(key, { what, do: todo, untilMs: this.clock.monotonicMs() + DEATH_MS });
  }

  end(key: string): void {
    this.standing.delete(key);
  }

  /** Notes that a task waits again without using up an attempt. @param delayMs the pause before it is tried again */
  noteTask(id: string, what: string, delayMs: number): void {
    if (this.tasks.size >= TASKS_MAX && !this.tasks.has(id)) return;
    this.tasks.set(id, { what, untilMs: this.clock.monotonicMs() + delayMs + OVERDUE_MS });
  }

  endTask(id: string): void {
    this.tasks.delete(id);
  }

  list(): Trouble[] {
    const nowMs = this.clock.monotonicMs();
    for (const [key, { untilMs }] of this.standing) if (untilMs < nowMs) this.standing.delete(key);
    const standing = [...this.standing.values()].map(({ what, do: todo }) => ({ what, do: todo }));
    const counts = new Map<string, number>();
    for (const [id, { what, untilMs }] of this.tasks) {
      if (untilMs < nowMs) this.tasks.delete(id);
      else counts.set(what, (counts.get(what) ?? 0) + 1);
    }
    const waiting = [...counts].map(([what, count]) => ({
      what: `${count === 1 ? "1 task waits" : `${count} tasks wait`}, and no attempt is used up: ${what}`,
      do: "mailchute doctor says what the machine lacks; the tasks go on once it has enough",
    }));
    return [...standing, ...waiting].slice(0, NAMED_MAX);
  }
}
