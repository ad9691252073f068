/** The progress of the runs of a machine, and which of them have changed. Pure. */
import type { RunNews } from "./messages.ts";

export class News {
  private now: ReadonlyMap<string, RunNews> = new Map();
  /** The progress that was last told, by id, without the running time, which always changes. */
  private told = new Map<string, string>();

  of(id: string): RunNews | undefined {
    return this.now.get(id);
  }

  /** @returns the ids of the runs that have changed */
  refresh(now: ReadonlyMap<string, RunNews>): Set<string> {
    const changed = new Set<string>();
    const told = new Map<string, string>();
    for (const [id, { ran_ms: ranMs, ...rest }] of now) {
      const text = JSON.stringify([ranMs === null, rest]);
      if (this.told.get(id) !== text) changed.add(id);
      told.set(id, text);
    }
    this.now = now;
    this.told = told;
    return changed;
  }
}
