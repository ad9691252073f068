/**
 * Computes the times of a schedule. Pure. The library croner reads the patterns. Changes of daylight saving have the same effect as
 * in Debian's cron. Times are epoch ms.
 */
import { Cron, CronDate } from "croner";
import { firstInstantAt, wallMsOf } from "./wall-time.ts";

/** When a schedule fires: exactly one of `cron`, `everyMs` and `atMs`. */
export interface Rhythm {
  /** Five fields, or six with the seconds first. */
  cron?: string;
  everyMs?: number;
  /** Epoch ms, in order. */
  atMs?: readonly number[];
  /** An IANA time zone. */
  timezone: string;
  /** It never fires before this time (epoch ms). `everyMs` counts from here. */
  startMs: number;
  /** It never fires after this time (epoch ms). */
  endMs: number;
}

/** A pattern that has no time within this span never fires. */
const NEVER_MS = 10 * 366 * 86_400_000;
/** This many times are computed first. */
const FEW = 4;
/** When daylight saving ends, no clock goes back by more than this (ms). */
const TURN_MS = 3 * 3_600_000;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * With two day fields a day must fit one of them, as in cron. But if one begins with a star, also with a step, a day must fit both
 * (crontab(5) of Debian). Croner does so only for a bare star.
 */
function cronOf(cron: string, timezone: string): Cron {
  const fields = cron.split(/[ \t]+/);
  const domAndDow = [fields.at(-3), fields.at(-1)].some((field) => field?.startsWith("*") === true);
  return new Cron(cron, { paused: true, timezone, mode: "5-or-6-parts", domAndDow });
}

/**
 * A pattern with a star in the hour or the minute goes on in real time while clocks change. Any other pattern names times of the
 * clock. Each of those has one instant, even if the clock skips it or shows it twice. Croner has that rule only for single values,
 * not for lists and ranges.
 */
function isInterval(cron: string): boolean {
  const fields = cron.split(/[ \t]+/);
  return cron === "@hourly" || [fields.at(-5), fields.at(-4)].some((one) => one?.startsWith("*"));
}

/** Times of a pattern up to `toMs`, the newest first, at most `max`; some may be older than `afterMs`. */
function cronTimesBack(
  { cron = "", timezone }: Rhythm,
  afterMs: number,
  toMs: number,
  max: number,
) {
  // Croner excludes the reference time, and knows only whole seconds.
  const untilMs = Math.floor(toMs / 1000) * 1000 + 1000;
  if (isInterval(cron)) {
    const runs = cronOf(cron, timezone);
    const times = (count: number): number[] =>
      runs.previousRuns(count, new Date(untilMs)).map((date) => date.getTime());
    // Usually one time is due, and it takes long to compute a thousand.
    const few = times(Math.min(FEW, max));
    return few.length < FEW || (few.at(-1) ?? 0) <= afterMs ? few : times(max);
  }
  const walls = cronOf(cron, "UTC");
  const found = new Set<number>();
  // In the second turn of an hour that comes twice, all its times are over.
  let wallMs = Math.max(
    wallMsOf(untilMs, timezone),
    wallMsOf(untilMs - TURN_MS, timezone) + TURN_MS,
  );
  for (let count = Math.min(FEW, max); found.size < max; count = max) {
    const some = walls.previousRuns(count, new Date(wallMs)).map((date) => date.getTime());
    for (const wall of some) {
      const ms = firstInstantAt(wall, timezone);
      if (ms < untilMs) found.add(ms);
      if (ms <= afterMs) return [...found];
    }
    if (some.length < count) break;
    wallMs = some.at(-1) ?? 0;
  }
  return [...found].slice(0, max);
}

/** Times of a pattern after `fromMs`, the next first, at most `max`. */
function cronTimesAhead({ cron = "", timezone }: Rhythm, fromMs: number, max: number): number[] {
  if (isInterval(cron))
    return cronOf(cron, timezone)
      .nextRuns(max, new Date(fromMs))
      .map((date) => date.getTime())
      .filter((ms) => ms > fromMs);
  const walls = cronOf(cron, "UTC");
  const found = new Set<number>();
  for (let wallMs = wallMsOf(fromMs, timezone); found.size < max; ) {
    const some = walls.nextRuns(max, new Date(wallMs)).map((date) => date.getTime());
    for (const wall of some) {
      const ms = firstInstantAt(wall, timezone);
      if (ms > fromMs) found.add(ms);
    }
    if (some.length < max) break;
    wallMs = some.at(-1) ?? 0;
  }
  return [...found].slice(0, max);
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
  return cronTimesBack(rhythm, Math.max(afterMs, startMs - 1), toMs, max).filter(isIn);
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
  return cronTimesAhead(rhythm, from, max).filter((ms) => ms <= endMs);
}

/** Why the rhythm has no times at all; undefined when it has some. */
export function findNever(rhythm: Rhythm): string | undefined {
  const { cron, timezone, startMs, endMs } = rhythm;
  if (cron === undefined) return undefined;
  if (cron.trim() !== cron || (!/^@\w+$/.test(cron) && !/^\S+(?:[ \t]+\S+){4,5}$/.test(cron)))
    return `cron: ${JSON.stringify(cron)} has neither five nor six fields`;
  try {
    const [next] = cronOf(cron, timezone).nextRuns(1, new Date(Math.max(0, startMs - 1)));
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
    const ms = /(?:Z|[+-]\d{2}:?\d{2})$/.test(text.slice(10))
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

/**
 * The time zone of this machine, for schedules that name none. With an empty `TZ`, or one that the time zone database lacks, ICU gives a
 * name that it refuses itself, or no name. Then this is a zone with the same times as `Date`.
 */
export function localZone(env: NodeJS.ProcessEnv = process.env): string {
  // Undefined with some values of TZ, although its type says otherwise.
  const told: string | undefined = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (told !== undefined && isZone(told)) return told;
  // A path to a zone works for `Date`.
  const [, named = ""] = /^:?(?:\/.*\/zoneinfo\/)?(\S+)$/.exec(env["TZ"] ?? "") ?? [];
  const now = new Date();
  if (named !== "" && isZone(named) && hasTimeOf(named, now)) return named;
  const westHours = now.getTimezoneOffset() / 60;
  const isPlain = Number.isInteger(westHours) && westHours !== 0;
  // In these names the sign says how far the zone is to the west.
  return isPlain ? `Etc/GMT${westHours > 0 ? "+" : ""}${westHours}` : "UTC";
}

function hasTimeOf(timezone: string, now: Date): boolean {
  const there = now.toLocaleString("sv", { timeZone: timezone });
  const westMs = now.getTimezoneOffset() * 60_000;
  return there === new Date(now.getTime() - westMs).toLocaleString("sv", { timeZone: "UTC" });
}

export function isZone(timezone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}
