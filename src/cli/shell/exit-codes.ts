/** The exit codes that scripts may rely on, and which error leads to which code. */
import { isSystemError, messageOf, systemCode } from "../../core/errors.ts";

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** Also used when there is nothing to do. */
  notFound: 3,
  conflict: 4,
  noSupervisor: 5,
  bug: 70,
  mailboxDir: 73,
  io: 74,
  temporary: 75,
  config: 78,
  waitTimedOut: 124,
  interrupted: 130,
} as const;

const BY_CODE: Readonly<Record<string, number>> = {
  ErrUsage: EXIT.usage,
  ErrInvalidTask: EXIT.usage,
  ErrInvalidCommand: EXIT.usage,
  ErrInvalidKv: EXIT.usage,
  ErrInvalidList: EXIT.usage,
  ErrInvalidMessage: EXIT.usage,
  ErrTaskNotFound: EXIT.notFound,
  ErrNoTasks: EXIT.notFound,
  ErrNoState: EXIT.notFound,
  ErrTaskExists: EXIT.conflict,
  ErrInvalidTransition: EXIT.conflict,
  ErrLeaseLost: EXIT.conflict,
  ErrForeignKey: EXIT.conflict,
  ErrInsideRun: EXIT.conflict,
  ErrSupervisorRunning: EXIT.conflict,
  ErrSupervisorGone: EXIT.noSupervisor,
  ErrMailboxDir: EXIT.mailboxDir,
  ErrGit: EXIT.failed,
  ErrIo: EXIT.io,
  ErrInvalidConfig: EXIT.config,
  ErrPlugin: EXIT.config,
  ErrInvalidRoadmap: EXIT.config,
};

/** Errors that the next try may not meet. */
const TEMPORARY: ReadonlySet<string> = new Set([
  "EMFILE",
  "ENFILE",
  "EAGAIN",
  "EBUSY",
  "ETIMEDOUT",
]);

/** The exit code for any thrown value. An error that is neither ours nor the system's is a bug. */
export function exitCodeOf(error: unknown): number {
  const code = systemCode(error);
  // Check the cause before the error itself: a task may run mailchute and end with its exit code. With 75, the task is tried again.
  // With 78, it would fail for good.
  const cause = (error as { cause?: unknown } | null)?.cause;
  if (TEMPORARY.has(code) || TEMPORARY.has(systemCode(cause))) return EXIT.temporary;
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  // Packages have codes of this form, too; a system error's message begins with its code.
  if (isSystemError(error) && messageOf(error).startsWith(`${code}: `)) return EXIT.io;
  return EXIT.bug;
}
