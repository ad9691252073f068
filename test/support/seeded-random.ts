/** Chance that repeats: the same seed gives the same numbers (mulberry32). */

export interface SeededRandom {
  /** Uniform in [0, 1). */
  (): number;
  /** A whole number from 0 to `end` - 1. */
  below(end: number): number;
  pick<T>(from: readonly T[]): T;
}

export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return Object.assign(next, {
    below,
    pick<T>(from: readonly T[]): T {
      if (from.length === 0) throw new RangeError("nothing to pick from");
      return from[below(from.length)] as T;
    },
  });
}
