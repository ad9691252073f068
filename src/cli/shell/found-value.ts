/** Shows the value behind an error whose message only describes its shape. It is printed on stderr on request, and never stored. */
import { MailchuteError } from "../../core/errors.ts";
import { safe } from "../../text/render.ts";

/** How many characters of a longer value are shown. */
const SHOWN_MAX = 500;

/** Whether a person asks for more to find a fault: stacks and values. */
export function isDebugging(env: NodeJS.ProcessEnv): boolean {
  return env["MAILCHUTE_DEBUG"] === "1";
}

/** The value as JSON on one line; undefined when no person asked for it, or the error holds no value. */
export function foundValue(error: unknown, env: NodeJS.ProcessEnv): string | undefined {
  if (!isDebugging(env) || !(error instanceof MailchuteError)) return undefined;
  if (error.found === undefined) return undefined;
  const text = safe(JSON.stringify(error.found));
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
