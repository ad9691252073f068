/** The effect of a command, as text. Pure. */
import { safe } from "./render.ts";

/** `paused: true, slots: 3`. */
export function resultText(result: Record<string, unknown>): string {
  return Object.entries(result)
    .map(([key, value]) => `${key}: ${safe(value)}`)
    .join(", ");
}
