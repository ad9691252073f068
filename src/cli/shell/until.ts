/** Reads a time that is to come: a time of day (`07:00`) or a duration from now (`8h`). */
import { ErrUsage } from "./command-spec.ts";
import { readDuration } from "./parse.ts";

/**
 * The time as epoch ms. A time of day is local and means the next time the clock shows it; a duration counts from now.
 * @param flag the option, for the error @throws ErrUsage
 */
export function readUntil(text: string, nowMs: number, flag = "--until"): number {
  const [, hours, minutes] = /^(\d{1,2}):(\d{2})$/.exec(text.trim()) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60)
    return nextTimeOfDay(Number(hours), Number(minutes), nowMs);
  const ms = readDuration(text, "s");
  if (ms !== undefined) return nowMs + ms;
  throw new ErrUsage(
    `${flag} wants a time of the day or a duration, found ${JSON.stringify(text)}`,
    "for example 07:00, 23:30, 8h, 1h30m",
  );
}

function nextTimeOfDay(hours: number, minutes: number, nowMs: number): number {
  const at = new Date(nowMs);
  at.setHours(hours, minutes, 0, 0);
  // Add a calendar day: a day on which clocks change does not have 24 hours.
  if (at.getTime() <= nowMs) at.setDate(at.getDate() + 1);
  return at.getTime();
}

/** It reads the clock at least this often (ms), because a timer does not count the time while the machine sleeps. */
const LOOK_MS = 10_000;

/** Calls `onTime` once, when the wall clock has reached that time. @returns a function that ends the wait */
export function callAt(untilMs: number, onTime: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const leftMs = Math.max(0, untilMs - Date.now());
    timer = setTimeout(() => (Date.now() < untilMs ? wait() : onTime()), Math.min(leftMs, LOOK_MS));
    timer.unref();
  };
  wait();
  return () => clearTimeout(timer);
}
