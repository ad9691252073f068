/** Retention: removes old segments whose mail is read, and the texts that only they had. A process that begins a new segment does this. */
import fs from "node:fs";
import { listDir } from "../../../host/list-dir.ts";
import { listAgents } from "../agents/agents.ts";
import { HUMAN } from "../scope/scope.ts";
import { unreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { headOf, listSegments, readBytes, type Segment } from "../store/segments.ts";

/**
 * The oldest first; it stops at the first one that stays. Mail that an agent on the list or a person has not read keeps its segment.
 * @param wallMs a segment to which nothing was added for the time of the folder's retention is old
 * @throws a system error
 */
export function removeOld(folder: MailFolder, wallMs: number): void {
  const beforeMs = wallMs - folder.keepMs;
  const segments = listSegments(folder);
  const isOld = (path: string): boolean =>
    (fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? wallMs) < beforeMs;
  let isRemoved = false;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || !isOld(segment.path) || !isRead(folder, next)) break;
    fs.rmSync(segment.path, { force: true });
    isRemoved = true;
  }
  if (!isRemoved) return;
  const left = listSegments(folder).map(({ path }) => readBytes(path));
  for (const ref of listDir(folder.path("blobs"))) {
    const path = folder.path("blobs", ref);
    // One that is young may belong to a message that is about to be recorded.
    if (isOld(path) && !left.some((bytes) => bytes.includes(ref))) fs.rmSync(path, { force: true });
  }
}

/** Whether all mail before this segment is read. */
function isRead(folder: MailFolder, next: Segment): boolean {
  const { first } = headOf(next);
  const readers = [HUMAN, ...listAgents(folder).map(({ name }) => name)];
  return readers.every((reader) => unreadOf(folder, reader).messages.every(({ n }) => n >= first));
}
