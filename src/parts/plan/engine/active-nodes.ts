/** The nodes in flight: their task is in the mailbox, or soon will be, and its end is not written into the plan yet. */
import { foldId } from "../../../core/names.ts";
import { NodeEvents } from "./node-events.ts";

interface ActiveNode {
  /** As it is written in the plan. */
  id: string;
  isSelected: boolean;
  /** True if its task runs, has run, or is being removed from the mailbox, as far as is known. */
  hasBegun: boolean;
  /** It was in progress before this supervisor started. The previous one may have written part of its follow-up. */
  isInherited: boolean;
}

export class ActiveNodes {
  /** The journal's events about these nodes. */
  readonly events = new NodeEvents();
  /** By folded id. */
  private readonly nodes = new Map<string, ActiveNode>();

  get size(): number {
    return this.nodes.size;
  }

  /** How many there are of those for which `isLeftOut` is false. */
  countBut(isLeftOut: (id: string) => boolean): number {
    return this.list().filter((id) => !isLeftOut(id)).length;
  }

  get unselectedCount(): number {
    return [...this.nodes.values()].filter((node) => !node.isSelected).length;
  }

  has(id: string): boolean {
    return this.nodes.has(foldId(id));
  }

  /** The id as it is written in the plan. @param key the folded id */
  idOf(key: string): string | undefined {
    return this.nodes.get(key)?.id;
  }

  /** Returns a copy: the caller may call `leave` while it walks the list. */
  list(): string[] {
    return Array.from(this.nodes.values(), ({ id }) => id);
  }

  /** Nodes whose first run no worker has begun. */
  listUnbegun(): string[] {
    return [...this.nodes.values()].filter((node) => !node.hasBegun).map(({ id }) => id);
  }

  /** Adds a node whose task will be submitted and then selected. */
  launch(id: string): void {
    this.join(id, { isSelected: false, hasBegun: false });
  }

  noteBegun(id: string): void {
    const node = this.nodes.get(foldId(id));
    if (node !== undefined) node.hasBegun = true;
  }

  noteSelected(id: string): void {
    this.join(id, { isSelected: true });
  }

  /** Adds a node that was in progress before this supervisor started. */
  inherit(id: string): void {
    this.join(id, { hasBegun: false, isInherited: true });
    this.events.trackBegun(id);
  }

  isInherited(id: string): boolean {
    return this.nodes.get(foldId(id))?.isInherited === true;
  }

  leave(id: string): void {
    this.nodes.delete(foldId(id));
    this.events.forget(id);
  }

  private join(id: string, known: Partial<ActiveNode>): void {
    const before = this.nodes.get(foldId(id)) ?? {
      isSelected: true,
      hasBegun: true,
      isInherited: false,
    };
    this.nodes.set(foldId(id), { ...before, ...known, id });
    this.events.track(id);
  }
}
