/** Retention: removes old segments whose mail is read, and the texts that only they had. A process that begins a new segment does this. */
import fs from "node:fs";
import { listDir } from "../../../host/list-dir.ts";
import { listAgents } from "../agents/agents.ts";
import { HUMAN } from "../scope/scope.ts";
import { firstUnreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { readBytes } from "../store/read-bytes.ts";
import { headOf, indexPathOf, listSegments } from "../store/segments.ts";

/** The name of a file in `blobs/`. */
const REF = /[0-9a-f]{64}/g;

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
  let firstUnread: number | undefined;
  let isRemoved = false;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || !isOld(segment.path)) break;
    firstUnread ??= firstUnreadIn(folder);
    // Undefined: another process is at work here.
    if ((headOf(next)?.first ?? Number.POSITIVE_INFINITY) > firstUnread) break;
    // The index first, so that a crash leaves none behind.
    for (const path of [indexPathOf(folder, segment.k), segment.path])
      fs.rmSync(path, { force: true });
    isRemoved = true;
  }
  if (isRemoved) removeTexts(folder, isOld);
}

/** The number of the first message that an agent or a person has not read. */
function firstUnreadIn(folder: MailFolder): number {
  const readers = [HUMAN, ...listAgents(folder).map(({ name }) => name)];
  const all = readers.map((reader) => firstUnreadOf(folder, reader) ?? Number.POSITIVE_INFINITY);
  return Math.min(...all);
}

/** Removes old texts that no message has any more. */
function removeTexts(folder: MailFolder, isOld: (path: string) => boolean): void {
  // One that is young may belong to a message that is about to be recorded.
  const old = listDir(folder.path("blobs")).filter((ref) => isOld(folder.path("blobs", ref)));
  if (old.length === 0) return;
  const used = new Set<string>();
  for (const { path } of listSegments(folder))
    for (const [ref] of readBytes(path).toString("latin1").matchAll(REF)) used.add(ref);
  for (const ref of old) if (!used.has(ref)) fs.rmSync(folder.path("blobs", ref), { force: true });
}
