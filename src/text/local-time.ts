/** Writes a time in the time zone of this computer. */

/** The local time to the minute: `2026-03-01 07:00`. @param ms epoch ms */
export function localTime(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - offsetMs).toISOString().slice(0, 16).replace("T", " ");
}

/** The local time of day to the second: `07:00:05`. @param ms epoch ms */
export function clockTime(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}
