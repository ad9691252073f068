/** What a worker process tells people, on stderr. */
import { visible } from "../core/visible.ts";

/** One line, in which nothing steers a terminal or hides: it may quote what others wrote. */
export function say(text: string): void {
  process.stderr.write(`mailchute: ${visible(text)}\n`);
}
