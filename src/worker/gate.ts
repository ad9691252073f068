/** Reads control.json before each claim. An unchanged file costs one stat call. */
import { parseName } from "../core/names.ts";
import { type ControlDocument, controlOf, INITIAL_CONTROL } from "../core/saved-documents.ts";
import type { LimitChanges } from "../core/task-limits.ts";
import { readDocument } from "../host/documents.ts";
import { statOf } from "../host/regular-file.ts";

export class Gate {
  private seen = "";
  private control: ControlDocument = INITIAL_CONTROL;

  constructor(
    private readonly path: string,
    private readonly workerId: string,
    private readonly ownSlots: number,
  ) {}

  /** How many attempts may run in this process now. During a pause, only tasks that `mayBegin` allows may start. */
  slots(): number {
    this.refresh();
    return Math.min(this.control.slots[this.workerId] ?? this.ownSlots, this.ownSlots * 1024);
  }

  /** The changes that commands made to groups and limits, as the last call of `slots` found them. */
  get limitChanges(): LimitChanges {
    return this.control.limit_changes;
  }

  /** Whether the last call of `slots` found a pause. */
  get isPaused(): boolean {
    return this.control.paused;
  }

  /** Whether the ready task under this name was launched before the pause, and so may still begin. */
  mayBegin(file: string): boolean {
    const name = parseName(file);
    return name?.attempt === 1 && this.control.launched.includes(name.id);
  }

  /** Whether nothing may start anywhere, not even inside a run that has begun. */
  get isClosed(): boolean {
    this.refresh();
    return this.control.paused || this.control.max_workers === 0;
  }

  private refresh(): void {
    try {
      const stats = statOf(this.path);
      const key = stats === undefined ? "none" : `${stats.ino}.${stats.mtimeMs}.${stats.size}`;
      if (key === this.seen) return;
      const control = stats === undefined ? {} : readDocument<Record<string, unknown>>(this.path);
      if (control === undefined) return;
      this.control = controlOf(control);
      this.seen = key;
    } catch {
      // The file was replaced while we read it, broken by hand, or the disk cannot be read now: the last valid state still applies.
    }
  }
}
