/** Counts how often in a row an agent, or a task, has failed in the same way. Pure. */

interface Streak {
  failure: string;
  count: number;
}

/** The key that failed longest ago is forgotten first. */
const KEYS_MAX = 1000;

export class FailureStreaks {
  private readonly streaks = new Map<string, Streak>();

  /**
   * @param key whose run has ended
   * @param failure how it failed; undefined: it did not
   * @returns how often in a row it has failed like this
   */
  note(key: string, failure: string | undefined): number {
    const before = this.streaks.get(key);
    this.streaks.delete(key);
    if (failure === undefined) return 0;
    const count = before?.failure === failure ? before.count + 1 : 1;
    this.streaks.set(key, { failure, count });
    const [oldest] = this.streaks.keys();
    if (this.streaks.size > KEYS_MAX && oldest !== undefined) this.streaks.delete(oldest);
    return count;
  }
}
