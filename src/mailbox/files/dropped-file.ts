/** Judges a dropped file before it is read, by kind, size, owner and links. The rules are the same for tasks and commands. */
import { join } from "node:path";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { inboxName, type ProcessingName } from "../../core/names.ts";
import type { FileFacts } from "./storage.ts";
import { closeTickets } from "./tickets.ts";
import { pathIn, type Trays } from "./trays.ts";

export const SECOND_LINK =
  "the file has a second hard link, so others could change it while it is used";

/** Why this file is refused whatever it contains; undefined when it may be read. @param uids owners allowed besides us and root */
export function explainBadFile(
  facts: FileFacts,
  uids: readonly number[],
  bytesMax = TASK_BYTES_MAX,
): string | undefined {
  if (facts.kind !== "file")
    return facts.kind === "directory"
      ? "a directory, not a file"
      : "not a regular file (a link, pipe, socket or device)";
  if (facts.size > bytesMax)
    return `the file has ${facts.size} bytes, more than the limit of ${bytesMax}`;
  return explainOwner(facts.uid, uids);
}

/** Why files of this owner must not run; undefined when they may. @param uids owners allowed besides us and root */
export function explainOwner(uid: number, uids: readonly number[]): string | undefined {
  const own = process.getuid?.() ?? uid;
  return uid === own || uid === 0 || uids.includes(uid)
    ? undefined
    : `the file belongs to uid ${uid}, which is not allowed here (setting: uids)`;
}

/**
 * Why a claimed file is not run. The check in the inbox does not suffice: another process may have replaced the file between that
 * check and the claim.
 * @param facts of the descriptor from which its bytes are read
 */
export function explainBadClaim(
  trays: Trays,
  name: ProcessingName,
  path: string,
  facts: FileFacts,
  bytesMax?: number,
): string | undefined {
  const fault = explainBadFile(facts, trays.uids, bytesMax);
  if (fault !== undefined || facts.nlink === 1 || hasOwnLink(trays, name, facts.ino)) return fault;
  // Its sender may have removed the other name since then.
  return (trays.storage.look(path)?.nlink ?? 1) > 1 ? SECOND_LINK : undefined;
}

/** Whether the mailbox itself holds this file under a second name: a submit, put back or retry is in progress, or was interrupted. */
function hasOwnLink(
  { storage, inbox, tmp, outbox, failed }: Trays,
  name: ProcessingName,
  ino: number,
): boolean {
  const isIt = (path: string): boolean => storage.look(path)?.ino === ino;
  if (isIt(pathIn(inbox, inboxName(name)))) return true;
  return [tmp, failed, outbox].some((dir) =>
    storage
      .list(dir)
      .some(
        (file) =>
          /^[-@~]/.test(file.slice(name.id.length)) &&
          file.startsWith(name.id) &&
          isIt(pathIn(dir, file)),
      ),
  );
}

/** Removes the second link to this file that an interrupted submit left, or its ticket. False when the link is not ours. */
export function dropStagedLink(trays: Trays, id: string, ino: number): boolean {
  const { storage, tmp } = trays;
  for (const staged of storage.list(tmp)) {
    const isOurs = staged.startsWith(`${id}-`) || staged.startsWith(`${id}@`);
    if (isOurs && storage.look(join(tmp, staged))?.ino === ino) {
      storage.unlink(join(tmp, staged));
      return true;
    }
  }
  return closeTickets(trays, id, ino);
}
