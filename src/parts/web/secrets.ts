/** Compares secrets of requests, and counts wrong ones so that guessing is slow. */
import { createHash, timingSafeEqual } from "node:crypto";

const WRONG_MS = 60_000;

/** Compares two texts. It takes the same time wherever they differ. */
export function isSame(a: string, b: string): boolean {
  const [x, y] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return x !== undefined && y !== undefined && timingSafeEqual(x, y);
}

/** Counts the wrong secrets of the last minute, up to a maximum. */
export class WrongOnes {
  private readonly times: number[] = [];

  /** @param nowMs a clock that is never set back */
  constructor(
    private readonly max: number,
    private readonly nowMs: () => number,
  ) {}

  /** Notes one more wrong secret. True when there were too many before. It keeps at most `max` times, so it does not grow. */
  isOneTooMany(): boolean {
    const { times } = this;
    const nowMs = this.nowMs();
    while (times[0] !== undefined && nowMs - times[0] >= WRONG_MS) times.shift();
    if (times.length >= this.max) return true;
    times.push(nowMs);
    return false;
  }
}
