/** Counts the tasks in work: how many places of each group, agent and limit they take. Pure. */
import { foldId } from "../../core/names.ts";

/** A group, an agent or a limit of which only so many places may be taken. */
export interface Limited {
  kind: "group" | "agent" | "limit";
  name: string;
}

/** What a task in `processing/` takes. */
export interface Place {
  id: string;
  limited: readonly Limited[];
  /** In its group; 1 elsewhere. */
  weight: number;
}

interface Taken {
  key: string;
  count: number;
}

export class Places {
  /** By folded id. */
  private readonly byId = new Map<string, readonly Taken[]>();
  private readonly counts = new Map<string, number>();
  private readonly slotsOf: (limited: Limited) => number | undefined;
  /** Called when a full one got room, or one became full. */
  private readonly onFull: () => void;

  constructor(slotsOf: (limited: Limited) => number | undefined, onFull: () => void) {
    this.slotsOf = slotsOf;
    this.onFull = onFull;
  }

  has(id: string): boolean {
    return this.byId.has(foldId(id));
  }

  /** The folded ids of all that have a place. */
  ids(): IterableIterator<string> {
    return this.byId.keys();
  }

  /** The names of this kind of which places are taken. */
  namesOf(kind: Limited["kind"]): string[] {
    return [...this.counts.keys()]
      .map(splitKey)
      .flatMap(([of, name]) => (of === kind ? [name] : []));
  }

  countOf(limited: Limited): number {
    return this.counts.get(keyOf(limited)) ?? 0;
  }

  /** Whether so much more fits. A task that weighs more than all slots takes all of them. */
  hasRoom(limited: Limited, weight = 1): boolean {
    const slots = this.slotsOf(limited) ?? Number.POSITIVE_INFINITY;
    return slots > 0 && this.countOf(limited) + Math.min(weight, slots) <= slots;
  }

  /** A task without a limit takes nothing, but its name is kept, so that its file is read once only. */
  enter({ id, limited, weight }: Place): void {
    this.leave(id);
    const taken = limited.flatMap((one) => {
      const slots = this.slotsOf(one);
      const count = one.kind === "group" ? Math.min(weight, slots ?? 1) : 1;
      return slots === undefined ? [] : [{ key: keyOf(one), count: Math.max(1, count), slots }];
    });
    this.byId.set(foldId(id), taken);
    for (const { key, count, slots } of taken) this.add(key, count, slots);
  }

  /** @returns false when it had no place */
  leave(id: string): boolean {
    const key = foldId(id);
    const taken = this.byId.get(key);
    if (taken === undefined) return false;
    this.byId.delete(key);
    for (const one of taken) {
      const [kind, name] = splitKey(one.key);
      this.add(one.key, -one.count, this.slotsOf({ kind, name }) ?? 0);
    }
    return true;
  }

  private add(key: string, more: number, slots: number): void {
    const before = this.counts.get(key) ?? 0;
    const count = before + more;
    if (count > 0) this.counts.set(key, count);
    else this.counts.delete(key);
    // People read about full ones only.
    if (Math.max(before, count) >= slots) this.onFull();
  }
}

function keyOf({ kind, name }: Limited): string {
  return `${kind}:${name}`;
}

function splitKey(key: string): [Limited["kind"], string] {
  const at = key.indexOf(":");
  return [key.slice(0, at) as Limited["kind"], key.slice(at + 1)];
}
