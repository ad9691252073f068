/**
 * Says which of the conditions that hold are news. A condition that comes and goes is news once, until it has been gone for some time.
 * Pure.
 */

/** A condition that comes back within this time is the same one (ms). */
const GONE_MS = 10 * 60_000;

export class NewConditions {
  /** When each condition went (monotonic ms); Infinity while it holds. */
  private readonly goneAtMs = new Map<string, number>();

  constructor(private readonly goneMs = GONE_MS) {}

  /** @param keys all conditions that hold now @returns those that are news */
  news(keys: ReadonlySet<string>, nowMs: number): Set<string> {
    for (const [key, goneAtMs] of this.goneAtMs)
      if (nowMs - goneAtMs >= this.goneMs) this.goneAtMs.delete(key);
      else if (goneAtMs === Number.POSITIVE_INFINITY && !keys.has(key))
        this.goneAtMs.set(key, nowMs);
    const news = new Set([...keys].filter((key) => !this.goneAtMs.has(key)));
    for (const key of keys) this.goneAtMs.set(key, Number.POSITIVE_INFINITY);
    return news;
  }
}
