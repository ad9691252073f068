/** How an error looks on stderr: code, what, where, what to do. Never touches stdout. */
import { MailchuteError, messageOf, systemCode } from "../core/errors.ts";
import { EXIT, exitCodeOf } from "./exit-codes.ts";
import { safe } from "./render.ts";

export interface ErrorReport {
  code: string;
  message: string;
  id?: string;
  path?: string;
  phase?: string;
  hint?: string;
}

/** The facts of anything thrown, as `--json` shows them. */
export function describeError(error: unknown): ErrorReport {
  if (error instanceof MailchuteError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.id === undefined ? {} : { id: error.id }),
      ...(error.path === undefined ? {} : { path: error.path }),
      ...(error.phase === undefined ? {} : { phase: error.phase }),
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    };
  }
  const path = (error as { path?: unknown } | null)?.path;
  const isBug = exitCodeOf(error) === EXIT.bug;
  return {
    code: isBug ? "ErrBug" : systemCode(error),
    message: messageOf(error),
    ...(typeof path === "string" ? { path } : {}),
    hint: isBug
      ? "this is a fault in mailchute: set MAILCHUTE_DEBUG=1 for the stack and report it"
      : "check the path, its rights and the disk",
  };
}

/**
 * Writes the report and gives the exit code.
 * @param write one chunk to stderr
 */
export function reportError(
  error: unknown,
  json: boolean,
  env: NodeJS.ProcessEnv,
  write: (text: string) => void,
): number {
  const report = describeError(error);
  if (json) {
    write(`${JSON.stringify({ error: report })}\n`);
  } else {
    // The system's own messages begin with their code.
    const message = report.message.startsWith(`${report.code}: `)
      ? report.message
      : `${report.code}: ${report.message}`;
    const lines = [`mailchute: ${safe(message)}`];
    const where = report.path ?? (report.id === undefined ? undefined : `task ${report.id}`);
    if (where !== undefined) lines.push(`  where: ${safe(where)}`);
    if (report.hint !== undefined) lines.push(`  do: ${safe(report.hint)}`);
    write(`${lines.join("\n")}\n`);
  }
  if (env["MAILCHUTE_DEBUG"] === "1" && error instanceof Error) write(`${error.stack ?? ""}\n`);
  return exitCodeOf(error);
}
