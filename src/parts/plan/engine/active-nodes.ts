/** The nodes in flight, as far as we know: their task is in the mailbox, or soon will be, and its end is not in the plan yet. */
import { foldId } from "../../../core/names.ts";
import { NodeEvents } from "./node-events.ts";

export class ActiveNodes {
  /** What the journal says of them. */
  readonly events = new NodeEvents();
  /** Their ids by folded id. */
  private readonly ids = new Map<string, string>();
  /** Submitted, and not selected yet. */
  private readonly unselected = new Set<string>();
  /** No worker has begun their first run, as far as we know. */
  private readonly unbegun = new Set<string>();
  /** They were in progress before we came: a dead supervisor may have written part of what follows from them. */
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

  /** The id as it is written, by the folded one. */
  idOf(key: string): string | undefined {
    return this.ids.get(key);
  }

  /** A copy: the caller may let nodes leave while it walks the list. */
  list(): string[] {
    return [...this.ids.values()];
  }

  /** Its task will be submitted, and then selected. */
  launch(id: string): void {
    this.join(id);
    this.unselected.add(id);
    this.unbegun.add(id);
  }

  listUnbegun(): string[] {
    return [...this.unbegun];
  }

  /** Its task runs, has run, or is being taken out of the mailbox. */
  noteBegun(id: string): void {
    this.unbegun.delete(id);
  }

  noteSelected(id: string): void {
    this.unselected.delete(id);
    this.join(id);
  }

  /** It was in progress before this supervisor came. */
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
