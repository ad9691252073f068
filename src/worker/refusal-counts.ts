/** Counts how often in a row the disk or the machine refused each task. */

/** Another worker may have run a task since, so the tasks that were refused longest ago are forgotten beyond this number. */
const TASKS_MAX = 4096;

export class RefusalCounts {
  private readonly counts = new Map<string, number>();

  constructor(private readonly max = TASKS_MAX) {}

  /** @returns how often in a row the task was refused, with this time */
  add(id: string): number {
    const count = (this.counts.get(id) ?? 0) + 1;
    this.counts.delete(id);
    for (const oldest of this.counts.keys()) {
      if (this.counts.size < this.max) break;
      this.counts.delete(oldest);
    }
    this.counts.set(id, count);
    return count;
  }

  /** The task was not refused. */
  forget(id: string): void {
    this.counts.delete(id);
  }
}
