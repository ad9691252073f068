/** Remembers which dropped tasks have fields that have no effect, for `status`. Names only some tasks. */
import type { Trouble } from "../../core/documents.ts";
import type { Task } from "../../core/task.ts";
import { type FieldNotice, fieldJudge, fieldsOfBatch } from "../../core/task-fields.ts";
import { BATCH_HEAD_BYTES, readHead } from "../../host/regular-file.ts";
import type { Alerts } from "../../journal/alerts.ts";

/** How many names are remembered, and how many tasks are named for each. */
const NOTES_MAX = 20;
const TASKS_MAX = 3;
/** So long they are shown, as a task that was dropped again (ms). */
const SHOWN_MS = 86_400_000;

interface FieldNote {
  ids: Set<string>;
  hasMore: boolean;
  /** Of the last one (monotonic ms). */
  atMs: number;
}

export class FieldNotes {
  private readonly notes = new Map<string, FieldNote>();
  /** Changes with each new name or task. */
  version = 0;

  constructor(
    private readonly alerts: Pick<Alerts, "notice">,
    private readonly clock: { monotonicMs(): number },
  ) {}

  noteTask(id: string, task: Task): void {
    const found = fieldJudge().judge(task, "task");
    if (found.length > 0) this.note(id, found);
  }

  noteBatch(id: string, path: string): void {
    this.note(id, fieldsOfBatch(readHead(path, BATCH_HEAD_BYTES)));
  }

  list(): Trouble[] {
    const untilMs = this.clock.monotonicMs() - SHOWN_MS;
    for (const [why, { atMs }] of this.notes) if (atMs < untilMs) this.notes.delete(why);
    return [...this.notes].map(([why, { ids, hasMore }]) => {
      const [first] = ids;
      const more = hasMore ? " and others" : "";
      return {
        what: `${[...ids].join(", ")}${more}: ${why}`,
        do: `mailchute show ${first}; to change it while it waits: mailchute edit ${first}`,
      };
    });
  }

  private note(id: string, found: readonly FieldNotice[]): void {
    for (const { why } of found) {
      const note = this.notes.get(why);
      if (note === undefined && this.notes.size >= NOTES_MAX) continue;
      const { ids, hasMore } = note ?? { ids: new Set<string>(), hasMore: false };
      const isNew = !ids.has(id);
      const isFull = ids.size >= TASKS_MAX;
      if (isNew && !isFull) ids.add(id);
      const isMore = hasMore || (isNew && isFull);
      if (note === undefined || isMore !== hasMore || (isNew && !isFull)) this.version++;
      this.notes.set(why, { ids, hasMore: isMore, atMs: this.clock.monotonicMs() });
      if (note === undefined) this.alerts.notice(`${id}: ${why}`);
    }
  }
}
