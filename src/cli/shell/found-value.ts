/** The value behind a message that tells its shape only: for a person who asks, on stderr. Nothing that is kept holds it. */
import { MailchuteError } from "../../core/errors.ts";
import { safe } from "../../text/render.ts";

/** Of a longer value the first characters are shown. */
const SHOWN_MAX = 500;

/** Whether a person who looks for a fault wants to see more: stacks, and values. */
export function isDebugging(env: NodeJS.ProcessEnv): boolean {
  return env["MAILCHUTE_DEBUG"] === "1";
}

/** What was found, as JSON on one line; undefined when it was not asked for, or the error is of another kind. */
export function foundValue(error: unknown, env: NodeJS.ProcessEnv): string | undefined {
  if (!isDebugging(env) || !(error instanceof MailchuteError)) return undefined;
  if (error.found === undefined) return undefined;
  const text = safe(JSON.stringify(error.found));
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
