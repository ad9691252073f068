/** Converts between instants and clock readings in a time zone. A reading is the epoch ms of the same reading in UTC. Pure. */
import { CronDate } from "croner";

const DAY_MS = 86_400_000;

/** The clock reading at this instant. */
export function wallMsOf(ms: number, timezone: string): number {
  const { year, month, day, hour, minute, second } = new CronDate(new Date(ms), timezone);
  return Date.UTC(year, month, day, hour, minute, second);
}

/** The first instant at which a clock shows this; if it never does, the first one after the gap. */
export function firstInstantAt(wallMs: number, timezone: string): number {
  const offsetAt = (ms: number): number => wallMsOf(ms, timezone) - Math.floor(ms / 1000) * 1000;
  const before = offsetAt(wallMs - DAY_MS);
  const after = offsetAt(wallMs + DAY_MS);
  for (const ms of [wallMs - before, wallMs - after])
    if (wallMsOf(ms, timezone) === wallMs) return ms;
  // The clock skips this reading between these two instants.
  let low = wallMs - Math.max(before, after);
  let high = wallMs - Math.min(before, after);
  while (high - low > 1000) {
    const middle = low + Math.floor((high - low) / 2000) * 1000;
    if (wallMsOf(middle, timezone) > wallMs) high = middle;
    else low = middle;
  }
  return high;
}
