/** Removes old segments whose mail is read, and the texts that only they used. A process does this when it begins a new segment. */
import fs from "node:fs";
import { listDir } from "../../../host/list-dir.ts";
import { statOf } from "../../../host/regular-file.ts";
import { listAgents } from "../agents/agents.ts";
import { HUMAN } from "../scope/scope.ts";
import { firstUnreadOf } from "../store/inbox.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { readBytes } from "../store/read-bytes.ts";
import { headOf, indexPathOf, listSegments } from "../store/segments.ts";

/** The name of a file in `blobs/`. */
const REF = /[0-9a-f]{64}/g;

/**
 * Removes segments, the oldest first, and stops at the first one that must stay. A segment with mail that a listed agent or a person
 * has not read stays.
 * @param wallMs now. A segment is old if no line was added to it for the retention time of the folder
 * @throws a system error
 */
export function removeOld(folder: MailFolder, wallMs: number): void {
  const beforeMs = wallMs - folder.keepMs;
  const segments = listSegments(folder);
  const isOld = (path: string): boolean => (statOf(path)?.mtimeMs ?? wallMs) < beforeMs;
  let firstUnread: number | undefined;
  let isRemoved = false;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || !isOld(segment.path)) break;
    firstUnread ??= firstUnreadIn(folder);
    // Undefined: another process is removing these segments, too.
    if ((headOf(next)?.first ?? Number.POSITIVE_INFINITY) > firstUnread) break;
    // The index is removed first, so that a crash does not leave an index without a segment.
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

/** Removes old texts that no message uses any more. */
function removeTexts(folder: MailFolder, isOld: (path: string) => boolean): void {
  // A young text may belong to a message that is about to be recorded.
  const old = listDir(folder.path("blobs")).filter((ref) => isOld(folder.path("blobs", ref)));
  if (old.length === 0) return;
  const used = new Set<string>();
  for (const { path } of listSegments(folder))
    for (const [ref] of readBytes(path).toString("latin1").matchAll(REF)) used.add(ref);
  for (const ref of old) if (!used.has(ref)) fs.rmSync(folder.path("blobs", ref), { force: true });
}
