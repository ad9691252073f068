/** What the machine refuses this pool just now: written to supervisor.json, where `status` and `doctor` find it. */
import type { Clock } from "../../core/clock.ts";
import type { Trouble } from "../../core/documents.ts";

/** A task that waits because of a trouble is heard of again within its delay and this (ms), or it is forgotten. */
const OVERDUE_MS = 60_000;
/** A death for want of memory is followed by the next within this time while memory is short (ms). */
const DEATH_MS = 60_000;
/** So many troubles are named, and so many tasks are remembered. */
const NAMED_MAX = 5;
const TASKS_MAX = 1000;

export class Shortages {
  private readonly clock: Clock;
  private readonly standing = new Map<string, Trouble & { untilMs: number }>();
  /** What keeps a task waiting, by its id, and until when that holds (monotonic ms). */
  private readonly tasks = new Map<string, { what: string; untilMs: number }>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** @param key what the trouble is with */
  note(key: string, what: string, todo: string): void {
    this.standing.set(key, { what, do: todo, untilMs: Number.POSITIVE_INFINITY });
  }

  /** It shows in deaths only: without another one it is over. */
  noteDeath(key: string, what: string, todo: string): void {
    this.standing.set(key, { what, do: todo, untilMs: this.clock.monotonicMs() + DEATH_MS });
  }

  end(key: string): void {
    this.standing.delete(key);
  }

  /** A task waits again, and has used up nothing. @param delayMs before it is tried again */
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
      do: "mailchute doctor says what the machine is short of; then it goes on by itself",
    }));
    return [...standing, ...waiting].slice(0, NAMED_MAX);
  }
}
