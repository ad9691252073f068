/** How often a process shows that it moves, so that others notice in `stall_ms` that it hangs. Pure. */
import type { Settings } from "./settings.ts";

/** So many beats fit into `stall_ms`. */
const BEATS = 6;
const BEAT_MS_MIN = 10;

/** Time between two beats (ms). Who watches looks as often. @param longestMs the time without a watch */
export function beatMsOf({ stall_ms: stallMs }: Pick<Settings, "stall_ms">, longestMs: number) {
  if (stallMs === 0) return longestMs;
  return Math.max(BEAT_MS_MIN, Math.min(longestMs, Math.floor(stallMs / BEATS)));
}
