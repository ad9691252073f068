/** Reads a time that has passed, as people type it. */
import { ErrUsage } from "./command-spec.ts";
import { readDuration } from "./parse.ts";

const TIME_OF_DAY = /^(\d{1,2}):(\d{2})$/;

/**
 * Epoch ms of `22:00` (local; the last time that the clock showed it), `12h` (12 hours ago) or an ISO 8601 time.
 * @param option its name, for the error
 * @throws ErrUsage
 */
export function readPast(text: string, nowMs: number, option: string): number {
  const [, hours, minutes] = TIME_OF_DAY.exec(text.trim()) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60)
    return lastTimeOfDay(Number(hours), Number(minutes), nowMs);
  const agoMs = readDuration(text, "s");
  if (agoMs !== undefined) return nowMs - agoMs;
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text.trim()) ? Date.parse(text.trim()) : Number.NaN;
  if (!Number.isNaN(atMs)) return atMs;
  throw new ErrUsage(
    `${option} wants a time of the day, a duration or a date, found ${JSON.stringify(text)}`,
    "for example 22:00, 12h, 2026-03-01, 2026-03-01T22:00",
  );
}

function lastTimeOfDay(hours: number, minutes: number, nowMs: number): number {
  const at = new Date(nowMs);
  at.setHours(hours, minutes, 0, 0);
  // Go back a calendar day: a day on which clocks change does not have 24 hours.
  if (at.getTime() > nowMs) at.setDate(at.getDate() - 1);
  return at.getTime();
}
