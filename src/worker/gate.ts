/** What steers this worker: `control.json`, looked at before each claim. One stat when nothing changed. */
import fs from "node:fs";
import { type ControlDocument, INITIAL_CONTROL } from "../core/documents.ts";
import { parseName } from "../core/names.ts";
import { controlOf } from "../core/saved-documents.ts";
import { readDocument } from "../host/documents.ts";

export class Gate {
  private readonly path: string;
  private readonly workerId: string;
  private readonly ownSlots: number;
  private seen = "";
  private control: ControlDocument = INITIAL_CONTROL;

  constructor(path: string, workerId: string, ownSlots: number) {
    this.path = path;
    this.workerId = workerId;
    this.ownSlots = ownSlots;
  }

  /** How many attempts may run here now; while paused, only those that `mayBegin`. */
  slots(): number {
    this.refresh();
    return Math.min(this.control.slots[this.workerId] ?? this.ownSlots, this.ownSlots * 1024);
  }

  /** As `slots` has found it. */
  get isPaused(): boolean {
    return this.control.paused;
  }

  /** Whether what is ready under this name was launched before the pause came, and so still begins. */
  mayBegin(file: string): boolean {
    const name = parseName(file);
    return name?.attempt === 1 && this.control.launched.includes(name.id);
  }

  /** Whether nothing may start anywhere: not even in what runs already. */
  get isClosed(): boolean {
    this.refresh();
    return this.control.paused || this.control.max_workers === 0;
  }

  private refresh(): void {
    try {
      const stats = fs.statSync(this.path, { throwIfNoEntry: false });
      const key = stats === undefined ? "none" : `${stats.ino}.${stats.mtimeMs}.${stats.size}`;
      if (key === this.seen) return;
      const control = stats === undefined ? {} : readDocument<Record<string, unknown>>(this.path);
      if (control === undefined) return;
      this.control = controlOf(control);
      this.seen = key;
    } catch {
      // Replaced while we read, broken by hand, or on a disk that does not give it now: the last state we understood stays in force.
    }
  }
}
