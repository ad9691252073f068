/**
 * The tasks in `processing/` that the supervisor knows: their ids, and where each file is that it has accepted and no worker has ended.
 * Pure.
 *
 * | place | what it means | how it ends |
 * |---|---|---|
 * | `floating` | no worker of ours had room, so workers that get no messages from us may find it | it is offered when there is room; or a listing shows that it was claimed |
 * | `alone` | it must run in a process of its own | it is offered when that process has started; or as above |
 * | `offered` | one of our workers was told of it | the worker says that it is done with it, or dies; or two listings show neither the file nor its id |
 */
import { foldId } from "../../core/names.ts";
import type { WaitingTask } from "../../core/waiting-task.ts";

export type Place = "floating" | "alone" | "offered";

interface AcceptedFile {
  place: Place;
  task: WaitingTask;
  /** The last listing did not show it. */
  isMissed: boolean;
}

export class AcceptedTasks {
  /** By folded id. */
  private readonly byId = new Map<string, { id: string; isMissed: boolean }>();
  private readonly files = new Map<string, AcceptedFile>();
  private readonly counts: Record<Place, number> = { floating: 0, alone: 0, offered: 0 };

  /** How many ids are in use. */
  get size(): number {
    return this.byId.size;
  }

  has(id: string): boolean {
    return this.byId.has(foldId(id));
  }

  *ids(): Iterable<string> {
    for (const { id } of this.byId.values()) yield id;
  }

  add(id: string): void {
    this.byId.set(foldId(id), { id, isMissed: false });
  }

  /** The id is free. A worker may still have to say that it is done with its file. */
  delete(id: string): void {
    this.byId.delete(foldId(id));
  }

  count(place: Place): number {
    return this.counts[place];
  }

  isPlaced(file: string): boolean {
    return this.files.has(file);
  }

  put(file: string, task: WaitingTask, place: Place): void {
    this.take(file);
    this.files.set(file, { place, task, isMissed: false });
    this.counts[place]++;
  }

  /** Removes a file. @returns its task */
  take(file: string): WaitingTask | undefined {
    const accepted = this.files.get(file);
    if (accepted === undefined) return undefined;
    this.files.delete(file);
    this.counts[accepted.place]--;
    return accepted.task;
  }

  /** The files in a place, in the order in which they came there. The caller may move them. */
  *in(place: Place): Iterable<[file: string, task: WaitingTask]> {
    if (this.counts[place] === 0) return;
    for (const [file, accepted] of this.files)
      if (accepted.place === place) yield [file, accepted.task];
  }

  /** The task of an offered file. */
  offered(file: string): WaitingTask | undefined {
    const accepted = this.files.get(file);
    return accepted?.place === "offered" ? accepted.task : undefined;
  }

  offeredOf(id: string | undefined): WaitingTask | undefined {
    for (const [, task] of this.in("offered")) if (task.id === id) return task;
    return undefined;
  }

  /**
   * Takes over a listing of `processing/`. One listing may miss a name that is being renamed; two in a row hardly ever do.
   * @param present ids by their folded ids @param ready the files that no process has claimed
   * @returns the ids that are gone; and the offered files about whose end a message was lost
   */
  compare(
    present: ReadonlyMap<string, string>,
    ready: ReadonlySet<string>,
  ): { vanished: string[]; lost: Set<string> } {
    const vanished: string[] = [];
    for (const [key, one] of this.byId) {
      if (present.has(key)) one.isMissed = false;
      else if (!one.isMissed) one.isMissed = true;
      else {
        this.byId.delete(key);
        vanished.push(one.id);
      }
    }
    for (const [key, id] of present)
      if (this.byId.get(key)?.id !== id) this.byId.set(key, { id, isMissed: false });
    const lost = new Set<string>();
    for (const [file, one] of this.files) {
      const wasMissed = one.isMissed;
      one.isMissed = !ready.has(file) && !present.has(foldId(one.task.id));
      if (one.place !== "offered") {
        if (!ready.has(file)) this.take(file);
      } else if (wasMissed && one.isMissed) {
        this.take(file);
        lost.add(file);
      }
    }
    return { vanished, lost };
  }
}
