/** The lifecycle events of the nodes in flight, from the journal. Their evidence is made of them. */
import { systemCode } from "../../../core/errors.ts";
import type { LifecycleEvent } from "../../../core/events.ts";
import { parseObject } from "../../../core/json-object.ts";
import { readJournal } from "../../../journal/read.ts";

/** A node that reports progress all day keeps only its newest events. */
const EVENTS_MAX = 2000;
const TASK_ID = /"task_id":"([^"\\]*)"/;

export class NodeEvents {
  private readonly events = new Map<string, LifecycleEvent[]>();
  private loading: Promise<void> | undefined = Promise.resolve();

  /** False while the journal must be read for nodes that others have begun. */
  get isAsked(): boolean {
    return this.loading !== undefined;
  }

  track(id: string): void {
    if (!this.events.has(id)) this.events.set(id, []);
  }

  forget(id: string): void {
    this.events.delete(id);
  }

  /** Takes a line of the journal. Lines about other tasks cost little. */
  addLine(line: string): void {
    if (this.events.size === 0) return;
    const id = TASK_ID.exec(line)?.[1];
    if (id === undefined || !this.events.has(id)) return;
    const record = parseObject(line);
    if (record !== undefined) this.add(record);
  }

  /** Sorted by time: several processes write, and lines that one of them held back come late. */
  of(id: string): LifecycleEvent[] {
    return (this.events.get(id) ?? []).toSorted((a, b) => a.t - b.t);
  }

  /** Another supervisor has begun the node: the next `load` reads the journal again. */
  trackBegun(id: string): void {
    this.track(id);
    this.loading = undefined;
  }

  /** Reads the lines about tracked nodes from before we came, once for all callers. A line that comes twice counts once. */
  load(path: string): Promise<void> {
    this.loading ??= this.read(path);
    return this.loading;
  }

  private async read(path: string): Promise<void> {
    if (this.events.size === 0) return;
    try {
      for await (const record of readJournal(path)) this.add(record);
    } catch (error) {
      // Evidence is worth less than the work: without the journal it tells less.
      if (systemCode(error) === "") throw error;
    }
  }

  private add(record: Record<string, unknown>): void {
    const event = record as unknown as LifecycleEvent;
    const known = this.events.get(event.task_id);
    if (known === undefined || typeof event.t !== "number") return;
    const isKnown = known.some(
      (each) => each.seq === event.seq && each.worker === event.worker && each.t === event.t,
    );
    if (!isKnown) known.push(event);
    if (known.length > EVENTS_MAX) known.shift();
  }
}
