/** What the journal tells of one task over all its attempts, the latest first, a page at a time. Reads only. */
import { parseObject } from "../core/json-object.ts";
import type { StateTree } from "../core/state-tree.ts";
import { linesWith, type Piece, placeIn, readBack } from "../journal/read-back.ts";

/** So much of the journal is searched for one page (bytes): some 50 ms. */
const SEARCHED_BYTES_MAX = 64 * 1024 * 1024;
/** At the end of a place: a page before it had the task's first event. */
const FIRST_SEEN = "!";

interface Timeline {
  /** The latest first. */
  events: Record<string, unknown>[];
  /** Where the next page begins: there may be older ones. Undefined: these were the last. */
  next?: string;
}

/**
 * The latest events of a task. The file before the journal's last rotation is searched, too, unless the journal holds the
 * task's first event.
 * @param limit at most so many; a page may have fewer and still not be the last
 * @param after `next` of the page before
 */
export function timelineOf(tree: StateTree, id: string, limit: number, after?: string): Timeline {
  const mark = JSON.stringify(id);
  const events: Record<string, unknown>[] = [];
  let bytesLeft = SEARCHED_BYTES_MAX;
  let hasFirst = after?.endsWith(FIRST_SEEN) ?? false;
  const place = (piece: Piece, at = 0): string => placeIn(piece, at) + (hasFirst ? FIRST_SEEN : "");
  for (const piece of readBack(tree.events, after?.replace(FIRST_SEEN, ""))) {
    if (hasFirst && piece.file !== tree.events) break;
    for (const { line, at } of linesWith(piece.bytes, mark)) {
      const event = parseObject(line.replaceAll("\0", ""));
      if (event?.["task_id"] !== id) continue;
      events.push(event);
      hasFirst ||= event["event"] === "selected" && event["attempt"] === 1;
      if (events.length >= limit) return { events, next: place(piece, at) };
    }
    bytesLeft -= piece.bytes.length;
    if (bytesLeft <= 0) return { events, next: place(piece) };
  }
  return { events };
}
