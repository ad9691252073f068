/** The nodes in flight: their task is in the mailbox, or soon will be, and its end is not written into the plan yet. */
import { foldId } from "../../../core/names.ts";
import { NodeEvents } from "./node-events.ts";

export class ActiveNodes {
  /** The journal's events about these nodes. */
  readonly events = new NodeEvents();
  /** The ids as written, by folded id. */
  private readonly ids = new Map<string, string>();
  /** Nodes whose task is not selected yet. */
  private readonly unselected = new Set<string>();
  /** Nodes whose first run no worker has begun, as far as is known. */
  private readonly unbegun = new Set<string>();
  /** Nodes that were in progress before this supervisor started. The previous one may have written part of their follow-up. */
  private readonly inherited = new Set<string>();

  get size(): number {
    return this.ids.size;
  }

  countBut(isLeftOut: (id: string) => boolean): number {
    let count = 0;
    for (const id of this.ids.values()) if (!isLeftOut(id)) count++;
    return count;
  }

  get unselectedCount(): number {
    return this.unselected.size;
  }

  has(id: string): boolean {
    return this.ids.has(foldId(id));
  }

  /** The id as it is written in the plan. @param key the folded id */
  idOf(key: string): string | undefined {
    return this.ids.get(key);
  }

  /** Returns a copy: the caller may call `leave` while it walks the list. */
  list(): string[] {
    return [...this.ids.values()];
  }

  /** Adds a node whose task will be submitted and then selected. */
  launch(id: string): void {
    this.join(id);
    this.unselected.add(id);
    this.unbegun.add(id);
  }

  listUnbegun(): string[] {
    return [...this.unbegun];
  }

  /** Notes that the node's task runs, has run, or is being removed from the mailbox. */
  noteBegun(id: string): void {
    this.unbegun.delete(id);
  }

  noteSelected(id: string): void {
    this.unselected.delete(id);
    this.join(id);
  }

  /** Adds a node that was in progress before this supervisor started. */
  inherit(id: string): void {
    this.ids.set(foldId(id), id);
    this.inherited.add(foldId(id));
    this.unbegun.add(id);
    this.events.trackBegun(id);
  }

  isInherited(id: string): boolean {
    return this.inherited.has(foldId(id));
  }

  leave(id: string): void {
    this.ids.delete(foldId(id));
    this.inherited.delete(foldId(id));
    this.unselected.delete(id);
    this.unbegun.delete(id);
    this.events.forget(id);
  }

  private join(id: string): void {
    this.ids.set(foldId(id), id);
    this.events.track(id);
  }
}
