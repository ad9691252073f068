/** Prints a worker process's messages for people, on stderr. */
import { visible } from "../core/visible.ts";

/** Prints one line. It may quote text of others, so control and invisible characters are made visible. */
export function say(text: string): void {
  process.stderr.write(`mailchute: ${visible(text)}\n`);
}
