/** A time as the clock on the wall shows it. */

/** Such as `2026-03-01 07:00`. */
export function localTime(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - offsetMs).toISOString().slice(0, 16).replace("T", " ");
}
