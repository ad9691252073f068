/** Prints an error on stderr: code, what, where, what to do. Never writes to stdout. */
import { compact } from "../../core/compact.ts";
import { MailchuteError, messageOf, systemCode } from "../../core/errors.ts";
import { visibleJson } from "../../core/visible.ts";
import { safe } from "../../text/render.ts";
import { EXIT, exitCodeOf } from "./exit-codes.ts";
import { foundValue, isDebugging } from "./found-value.ts";
import { type StatePlace, whereFrom } from "./state-dir.ts";

export interface ErrorReport {
  code: string;
  message: string;
  /** The state tree of the command, when the command line did not name it. */
  state_dir?: string;
  id?: string;
  path?: string;
  phase?: string;
  hint?: string;
  /** The wrong value, as JSON; only on request. */
  found?: string;
}

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: "make room on the disk; mailchute clean removes what is past its retention",
  EDQUOT: "make room: your share of the disk is used up",
  EROFS: "it is mounted read-only: remount it, or move the state tree",
  EACCES: "check its owner and rights, or run mailchute as its owner",
  EPERM: "check its owner and rights, or run mailchute as its owner",
  ENOTDIR: "a part of the path is not a directory: check --state and MAILCHUTE_STATE",
  ENOENT: "something in the path is not there: check it, and --state",
  EMFILE: "raise the limit of open files (ulimit -n), and try again",
  EAGAIN:
    "raise the limit of processes and threads (ulimit -u, TasksMax=, --pids-limit), or end some, and try again",
  ENFILE: "too many files are open on this machine: try again",
};
const MORE_ADVICE = "check the path, its rights and the disk";

/**
 * The facts of any thrown value, as `--json` shows them. A system error becomes ErrIo, with the system's code in the message.
 * @param where the path or thing in use, for system errors that name no path
 */
export function describeError(error: unknown, where?: string): ErrorReport {
  if (error instanceof MailchuteError) {
    const { code, message, id, path, phase } = error;
    // On a read-only disk, rights and owners are never the reason.
    const isReadOnly = systemCode(error.cause) === "EROFS";
    const hint = isReadOnly
      ? ADVICE["EROFS"]
      : (error.hint ?? (code === "ErrIo" ? adviceFor(error.cause) : undefined));
    return compact({ code, message, id, path, phase, hint });
  }
  if (exitCodeOf(error) === EXIT.bug) {
    return {
      code: "ErrBug",
      message: messageOf(error),
      hint: "this is a fault in mailchute: set MAILCHUTE_DEBUG=1 for the stack and report it",
    };
  }
  const own = (error as { path?: unknown }).path;
  const path = typeof own === "string" ? own : where;
  return compact({ code: "ErrIo", message: messageOf(error), path, hint: adviceFor(error) });
}

function adviceFor(error: unknown): string {
  if ((error as { syscall?: unknown } | undefined)?.syscall === "uv_cwd")
    return "the current directory was deleted: cd to one that is there";
  return ADVICE[systemCode(error)] ?? MORE_ADVICE;
}

/**
 * Writes the report and returns the exit code.
 * @param write writes one chunk to stderr
 * @param state the state tree of the command
 */
export function reportError(
  error: unknown,
  json: boolean,
  env: NodeJS.ProcessEnv,
  write: (text: string) => void,
  state?: StatePlace,
): number {
  const report = describeError(error, state?.dir);
  const found = foundValue(error, env);
  if (found !== undefined) report.found = found;
  const isLookedFor = state?.from === "above" || state?.from === "environment";
  if (isLookedFor) report.state_dir = state.dir;
  if (json) {
    write(`${visibleJson({ error: report })}\n`);
  } else {
    const lines = [`mailchute: ${safe(`${report.code}: ${report.message}`)}`];
    const place = report.path ?? (report.id === undefined ? undefined : `task ${report.id}`);
    if (place !== undefined) lines.push(`  where: ${safe(place)}`);
    if (isLookedFor && report.path !== state.dir)
      lines.push(
        `  state: ${safe(state.dir)}${state.from === "environment" ? " (MAILCHUTE_STATE)" : whereFrom(state)}`,
      );
    if (found !== undefined) lines.push(`  found: ${found}`);
    if (report.hint !== undefined) lines.push(`  do: ${safe(report.hint)}`);
    write(`${lines.join("\n")}\n`);
  }
  if (isDebugging(env) && error instanceof Error) write(`${error.stack ?? ""}\n`);
  return exitCodeOf(error);
}
