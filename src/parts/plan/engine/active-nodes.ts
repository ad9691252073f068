/** Which nodes are in flight: their task is in the mailbox, or about to be, and has not been carried back, as far as we know. */
import { foldId } from "../../../core/names.ts";
import { NodeEvents } from "./node-events.ts";

export class ActiveNodes {
  /** What the journal says of them. */
  readonly events = new NodeEvents();
  /** Their ids by folded id. */
  private readonly ids = new Map<string, string>();
  /** On their way to be selected. */
  private readonly unselected = new Set<string>();
  /** Whose first run has not begun, as far as we know. */
  private readonly unbegun = new Set<string>();
  /** Whose follow-up a dead supervisor may have begun. */
  private readonly inherited = new Set<string>();

  get size(): number {
    return this.ids.size;
  }

  /** How many there are without those for which `isLeftOut` is true. */
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

  /** A copy: the caller may end active while it walks it. */
  list(): string[] {
    return [...this.ids.values()];
  }

  /** It is to be submitted, and will be selected. */
  launch(id: string): void {
    this.join(id);
    this.unselected.add(id);
    this.unbegun.add(id);
  }

  /** Nodes that are in progress, and that no worker has claimed yet. */
  listUnbegun(): string[] {
    return [...this.unbegun];
  }

  /** It runs, or has run, or is on its way out of the mailbox. */
  noteBegun(id: string): void {
    this.unbegun.delete(id);
  }

  noteSelected(id: string): void {
    this.unselected.delete(id);
    this.join(id);
  }

  /** It was in progress before we came. */
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
