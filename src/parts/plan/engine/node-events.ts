/** Collects the lifecycle events of the nodes in flight from the journal, for their evidence. */
import { systemCode } from "../../../core/errors.ts";
import type { LifecycleEvent } from "../../../core/events.ts";
import { parseObject } from "../../../core/json-object.ts";
import { readJournal } from "../../../journal/read.ts";

/** How many events of a node are kept: the newest. A node may report progress all day. */
const EVENTS_MAX = 2000;
const TASK_ID = /"task_id":"([^"\\]*)"/;

export class NodeEvents {
  private readonly events = new Map<string, LifecycleEvent[]>();
  private loading: Promise<void> | undefined = Promise.resolve();

  /** False while the journal must still be read for nodes that an earlier supervisor launched. */
  get isAsked(): boolean {
    return this.loading !== undefined;
  }

  track(id: string): void {
    if (!this.events.has(id)) this.events.set(id, []);
  }

  forget(id: string): void {
    this.events.delete(id);
  }

  /** Adds a line of the journal. Lines about other tasks are not parsed. */
  addLine(line: string): void {
    if (this.events.size === 0) return;
    const id = TASK_ID.exec(line)?.[1];
    if (id === undefined || !this.events.has(id)) return;
    const record = parseObject(line);
    if (record !== undefined) this.add(record);
  }

  /** The events of a node sorted by time: several processes write the journal, and some lines come late. */
  of(id: string): LifecycleEvent[] {
    return (this.events.get(id) ?? []).toSorted((a, b) => a.t - b.t);
  }

  /** Tracks a node that an earlier supervisor launched: the next `load` reads the journal again. */
  trackBegun(id: string): void {
    this.track(id);
    this.loading = undefined;
  }

  /** Reads older lines about tracked nodes, once for all callers. A line that is read twice counts once. */
  load(path: string): Promise<void> {
    this.loading ??= this.read(path);
    return this.loading;
  }

  private async read(path: string): Promise<void> {
    if (this.events.size === 0) return;
    try {
      for await (const record of readJournal(path)) this.add(record);
    } catch (error) {
      // An unreadable journal must not stop the node: its evidence then has fewer events.
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
