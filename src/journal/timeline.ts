/** Reads the events of one task from the journal, over all its attempts: the latest first, one page at a time. */
import { parseObject } from "../core/json-object.ts";
import { PIECE_BYTES, searchBack } from "./read-back.ts";

/** How many pieces of the journal are searched for one page. This takes about 50 ms. */
const PIECES_MAX = (64 * 1024 * 1024) / PIECE_BYTES;

interface Timeline {
  /** The latest first. */
  events: Record<string, unknown>[];
  /** Where the next page begins. Undefined when there are no older events. */
  next?: string;
}

/**
 * The latest events of a task. The last rotated file is searched, too, unless the journal has the task's first event.
 * @param limit most events on a page; a page can have fewer although another page follows
 * @param after `next` of the previous page
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
