/** Counts the tasks in a tray of any size over several looks, and again when the tray has changed. Reads only. */
import { join } from "node:path";
import type { StateTree } from "../core/state-tree.ts";
import { TRAYS, type TrayState, taskIn } from "./choose-files.ts";
import { stampOf } from "./kept.ts";
import { COUNT_MAX, type Count, namesIn } from "./scan.ts";

/** How many more names each look reads by default, except the first (10 ms). */
const LATER_LOOK_NAMES = 10_000;
const PICKED_MAX = 1000;

/** Sees the names of tasks as they are counted, from the beginning of each count to its end, which may be some looks later. */
export interface Observer {
  begin(): void;
  see(name: string): void;
  end(): void;
}

const OLD = { is_exact: false, is_old: true } as const;

export class TrayCount {
  /** Results of `pick` for some of the names. */
  picked: readonly string[] = [];
  private readonly dir: string;
  private readonly observer: Observer | undefined;
  private last: Count | undefined;
  private walk: Generator<string> | undefined;
  private stamp: string | undefined;
  private count = 0;
  private found: string[] = [];

  constructor(
    tree: StateTree,
    private readonly state: TrayState,
    private readonly pick: (name: string) => string | undefined = () => undefined,
    private readonly laterLookNames = LATER_LOOK_NAMES,
    observer?: Observer,
  ) {
    this.observer = observer;
    this.dir = join(tree.mailbox, TRAYS[state].name);
  }

  /** Returns the old count while it counts again. @throws ErrIo when the tray exists and cannot be read */
  look(): Count {
    const stamp = stampOf(this.dir);
    const isNew = this.walk === undefined;
    if (isNew && stamp === this.stamp && this.last?.is_exact === true) return this.last;
    const namesMax = this.stamp === undefined ? COUNT_MAX : this.laterLookNames;
    if (isNew) {
      this.stamp = stamp;
      this.count = 0;
      this.found = [];
      this.observer?.begin();
    }
    const isThrough = this.goOn(this.walk ?? namesIn(this.dir), namesMax);
    const { count, last } = this;
    if (!isThrough && last !== undefined) return { ...last, ...OLD };
    this.picked = this.found;
    if (!isThrough) return { count, is_exact: false };
    this.last = stamp === this.stamp ? { count, is_exact: true } : { count, ...OLD };
    return this.last;
  }

  close(): void {
    this.walk?.return(undefined);
    this.walk = undefined;
  }

  /** @returns whether the walk has ended */
  private goOn(walk: Generator<string>, namesMax: number): boolean {
    // An error ends the walk: the next look starts a new one.
    this.walk = undefined;
    for (let left = namesMax; left > 0; left--) {
      const { value: name, done } = walk.next();
      if (done === true) {
        this.observer?.end();
        return true;
      }
      const isTask = taskIn(TRAYS[this.state], name) !== undefined;
      if (isTask) {
        this.count++;
        this.observer?.see(name);
      }
      const picked = this.found.length < PICKED_MAX ? this.pick(name) : undefined;
      if (picked !== undefined) this.found.push(picked);
    }
    this.walk = walk;
    return false;
  }
}
