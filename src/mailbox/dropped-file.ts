/** What can be said of a dropped file before it is read: kind, size, owner, links. The same for tasks and commands. */
import { join } from "node:path";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import type { FileFacts } from "./storage.ts";
import type { Trays } from "./trays.ts";

export const SECOND_LINK =
  "the file has a second hard link, so others could change it while it is used";

/** Why this file is refused whatever it holds; undefined when it may be read. @param uids owners allowed beside us and root */
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
  const own = process.getuid?.() ?? facts.uid;
  if (facts.uid !== own && facts.uid !== 0 && !uids.includes(facts.uid))
    return `the file belongs to uid ${facts.uid}, which is not allowed here (setting: uids)`;
  return undefined;
}

/** Removes the second link to this file that a submit of ours left when it died. False when the link is somebody else's. */
export function dropStagedLink(trays: Trays, id: string, ino: number): boolean {
  const { storage, tmp } = trays;
  for (const staged of storage.list(tmp)) {
    const isOurs = staged.startsWith(`${id}-`) || staged.startsWith(`${id}@`);
    if (isOurs && storage.look(join(tmp, staged))?.ino === ino) {
      storage.unlink(join(tmp, staged));
      return true;
    }
  }
  return false;
}
