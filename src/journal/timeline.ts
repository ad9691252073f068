/** What the journal tells of one task over all its attempts, the latest first, a page at a time. Reads only. */
import { parseObject } from "../core/json-object.ts";
import { PIECE_BYTES, searchBack } from "./read-back.ts";

/** So much of the journal is searched for one page: some 50 ms. */
const PIECES_MAX = (64 * 1024 * 1024) / PIECE_BYTES;

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
export function timelineOf(path: string, id: string, limit: number, after?: string): Timeline {
  const events: Record<string, unknown>[] = [];
  let pieces = 0;
  let hasFirst = false;
  for (const { line, file, place } of searchBack(path, [JSON.stringify(id)], after)) {
    if (hasFirst && file !== path) break;
    const event = line === undefined ? undefined : parseObject(line.replaceAll("\0", ""));
    if (line === undefined) pieces++;
    if (event?.["task_id"] === id) {
      events.push(event);
      hasFirst ||= event["event"] === "selected" && event["attempt"] === 1;
    }
    if (events.length >= limit || pieces >= PIECES_MAX) return { events, next: place };
  }
  return { events };
}
