/** Makes the errors that the library's mailbox throws because of the file system or another process. Pure. */
import { ErrIo, ErrLeaseLost, isSystemError, MailchuteError, messageOf } from "../core/errors.ts";
import type { Claim } from "../mailbox/claim/claim.ts";

/** Turns a system error into an ErrIo. Returns any other error unchanged. */
export function asErrIo(error: unknown, phase: string, dir: string): unknown {
  if (error instanceof MailchuteError || !isSystemError(error)) return error;
  return new ErrIo(`cannot ${phase}: ${messageOf(error)}`, {
    path: (error as { path?: string }).path ?? dir,
    phase,
    cause: error,
    hint: "check the disk and the rights, then try again",
  });
}

export function cannotRead(claim: Claim, cause: unknown): ErrIo {
  return new ErrIo(`cannot read ${claim.name.id}: ${messageOf(cause)}`, {
    id: claim.name.id,
    path: claim.path,
    phase: "claim",
    cause,
    hint: "it was put back: try again",
  });
}

export function leaseLost({
  id,
  lease,
  path,
}: {
  id: string;
  lease: string;
  path: string;
}): ErrLeaseLost {
  return new ErrLeaseLost(`the lease ${lease} of ${id} is not ours any more; nothing was changed`, {
    id,
    path,
    phase: "settle",
    hint: "drop the work; another process has the task",
  });
}
