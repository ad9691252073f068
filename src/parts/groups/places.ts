/** Counts the tasks in work: how many places of each group, agent and limit they take. Pure. */
import { foldId } from "../../core/names.ts";

/** A group, an agent or a limit with a bounded number of places. */
export interface Limited {
  kind: "group" | "agent" | "limit";
  name: string;
}

/** The places that a task in `processing/` takes. */
export interface Place {
  id: string;
  limited: readonly Limited[];
  /** How many places of its group the task takes. It takes one place of an agent or a limit. */
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

  constructor(
    private readonly slotsOf: (limited: Limited) => number | undefined,
    /** Called when one became full, got room, or changed while it was full. */
    private readonly onFull: () => void,
  ) {}

  has(id: string): boolean {
    return this.byId.has(foldId(id));
  }

  /** The folded ids of all tasks that were entered. */
  ids(): IterableIterator<string> {
    return this.byId.keys();
  }

  /** The names of this kind that have taken places. */
  namesOf(kind: Limited["kind"]): string[] {
    return [...this.counts.keys()]
      .map(splitKey)
      .flatMap(([of, name]) => (of === kind ? [name] : []));
  }

  countOf(limited: Limited): number {
    return this.counts.get(keyOf(limited)) ?? 0;
  }

  /** Whether a task of this weight fits. A task that weighs more than all slots takes all of them. */
  hasRoom(limited: Limited, weight = 1): boolean {
    const slots = this.slotsOf(limited) ?? Number.POSITIVE_INFINITY;
    return slots > 0 && this.countOf(limited) + Math.min(weight, slots) <= slots;
  }

  /** Gives a task its places. A task without a limit takes none, but its id is kept, so that its file is read only once. */
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

  /** The task takes a place of this agent, and no more one of another agent. */
  giveToAgent(id: string, agent: string): void {
    const key = foldId(id);
    const taken = this.byId.get(key)?.filter((one) => splitKey(one.key)[0] !== "agent");
    if (taken === undefined) return;
    this.leave(id);
    const slots = this.slotsOf({ kind: "agent", name: agent });
    const own = { key: keyOf({ kind: "agent", name: agent }), count: 1 };
    const all = slots === undefined ? taken : [...taken, own];
    this.byId.set(key, all);
    for (const { key: of, count } of all) {
      const [kind, name] = splitKey(of);
      this.add(of, count, this.slotsOf({ kind, name }) ?? 0);
    }
  }

  /** @returns false when the task was not entered */
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
    // The status shows only full ones.
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
