/** Reads the end of a run as a person gives it: a time of the day (`07:00`) or a duration (`8h`). */
import { ErrUsage } from "./command-spec.ts";
import { readDuration } from "./parse.ts";

/**
 * The end as epoch ms. A time of the day is local, and the next one of that name; a duration counts from now.
 * @throws ErrUsage
 */
export function readUntil(text: string, nowMs: number): number {
  const [, hours, minutes] = /^(\d{1,2}):(\d{2})$/.exec(text.trim()) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60)
    return nextTimeOfDay(Number(hours), Number(minutes), nowMs);
  const ms = readDuration(text, "s");
  if (ms !== undefined) return nowMs + ms;
  throw new ErrUsage(
    `--until wants a time of the day or a duration, found ${JSON.stringify(text)}`,
    "for example 07:00, 23:30, 8h, 45m",
  );
}

function nextTimeOfDay(hours: number, minutes: number, nowMs: number): number {
  const at = new Date(nowMs);
  at.setHours(hours, minutes, 0, 0);
  // By the calendar: a day on which clocks change has no 24 hours.
  if (at.getTime() <= nowMs) at.setDate(at.getDate() + 1);
  return at.getTime();
}

/** A look at the clock at least so often (ms): a timer does not count the time that the machine sleeps. */
const LOOK_MS = 10_000;

/** Calls `onTime` once, when the wall clock has reached that time. @returns ends the wait */
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
