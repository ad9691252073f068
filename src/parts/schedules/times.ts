/** The times of a schedule. Pure: croner computes them, with daylight saving as Debian's cron has it. Times are epoch ms. */
import { Cron, CronDate } from "croner";
import type { Rhythm } from "./schedule.ts";

/** A pattern that has no time within this span never fires. */
const NEVER_MS = 10 * 366 * 86_400_000;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Two day fields mean either of them, as in cron. One that begins with a star, also with a step, does not count as given: then both
 * have to fit (crontab(5) of Debian). Croner has it so for a bare star only.
 */
function cronOf({ cron = "", timezone }: Rhythm): Cron {
  const fields = cron.split(/[ \t]+/);
  const domAndDow = [fields.at(-3), fields.at(-1)].some((field) => field?.startsWith("*") === true);
  return new Cron(cron, { paused: true, timezone, mode: "5-or-6-parts", domAndDow });
}

/** Times after `afterMs` up to `untilMs`, the newest first, at most `max`. */
export function timesBetween(
  rhythm: Rhythm,
  afterMs: number,
  untilMs: number,
  max: number,
): number[] {
  const { everyMs, atMs, startMs, endMs } = rhythm;
  const toMs = Math.min(untilMs, endMs);
  const isIn = (ms: number): boolean => ms > afterMs && ms >= startMs && ms <= toMs;
  if (toMs <= afterMs) return [];
  if (atMs !== undefined) return atMs.filter(isIn).reverse().slice(0, max);
  if (everyMs !== undefined) {
    const times: number[] = [];
    const last = startMs + Math.floor((toMs - startMs) / everyMs) * everyMs;
    for (let ms = last; isIn(ms) && times.length < max; ms -= everyMs) times.push(ms);
    return times;
  }
  // Croner leaves the reference out, and knows whole seconds only.
  const reference = new Date(Math.floor(toMs / 1000) * 1000 + 1000);
  const cron = cronOf(rhythm);
  for (const count of [Math.min(4, max), max]) {
    const times = cron.previousRuns(count, reference).map((date) => date.getTime());
    const found = times.filter(isIn);
    // Mostly one time is due, and a thousand take long to find.
    if (found.length < count || count === max) return found;
  }
  return [];
}

/** Times after `afterMs`, the next first, at most `max`. */
export function timesAfter(rhythm: Rhythm, afterMs: number, max: number): number[] {
  const { everyMs, atMs, startMs, endMs } = rhythm;
  if (atMs !== undefined)
    return atMs.filter((ms) => ms > afterMs && ms >= startMs && ms <= endMs).slice(0, max);
  if (everyMs !== undefined) {
    const times: number[] = [];
    const count = afterMs < startMs ? 0 : Math.floor((afterMs - startMs) / everyMs) + 1;
    for (let ms = startMs + count * everyMs; ms <= endMs && times.length < max; ms += everyMs)
      times.push(ms);
    return times;
  }
  const from = Math.max(afterMs, startMs - 1);
  return cronOf(rhythm)
    .nextRuns(max, new Date(from))
    .map((date) => date.getTime())
    .filter((ms) => ms > from && ms <= endMs);
}

/** Why this has no times at all; undefined when it has some. */
export function findNever(rhythm: Rhythm): string | undefined {
  const { cron, startMs, endMs } = rhythm;
  if (cron === undefined) return undefined;
  if (cron.trim() !== cron || (!/^@\w+$/.test(cron) && !/^\S+(?:[ \t]+\S+){4,5}$/.test(cron)))
    return `cron: ${JSON.stringify(cron)} has neither five nor six fields`;
  try {
    const [next] = cronOf(rhythm).nextRuns(1, new Date(Math.max(0, startMs - 1)));
    const isNever =
      next === undefined || next.getTime() > Math.min(endMs, Math.max(0, startMs) + NEVER_MS);
    return isNever ? `cron: ${JSON.stringify(cron)} has no time` : undefined;
  } catch (error) {
    return `cron: ${error instanceof Error ? error.message.replace(/^Cron\w+: /, "") : String(error)}`;
  }
}

/** A time as people write it: local to the zone unless it has an offset. Undefined when it is none. */
export function instantOf(text: string, timezone: string): number | undefined {
  if (!ISO.test(text)) return undefined;
  try {
    const ms = /(?:Z|[+-]d{2}:?d{2})$/.test(text.slice(10))
      ? Date.parse(text.replace(" ", "T"))
      : new CronDate(
          text.length === 10 ? `${text}T00:00:00` : text.replace(" ", "T").padEnd(19, ":00"),
          timezone,
        )
          .getDate(false)
          .getTime();
    return Number.isNaN(ms) ? undefined : ms;
  } catch {
    return undefined;
  }
}

export function isZone(timezone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}
