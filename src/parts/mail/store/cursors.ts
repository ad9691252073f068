/**
 * Records how far a reader has provably read the messages of a scope: `cursors/<reader>/<n>.json`. The highest `<n>` counts. A record
 * is never changed. The next record is linked as n+1. Only one process can do this, so two processes never overwrite each other.
 */
import { join } from "node:path";
import { isCount, isNumber, type Of, orElse, shape } from "../../../core/shape.ts";
import type { Documents } from "../../../host/document-store.ts";
import { listDirForSure } from "../../../host/list-dir.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "./mail-folder.ts";
import { syncMessages } from "./segments.ts";

const cursor = shape({
  /** The number of the record; 0 when there is none. */
  n: orElse(isCount, 0),
  /** The number of the last message that was read. */
  upto: isNumber,
  /** How many wake-ups for the mail above `upto` have failed. */
  fails: orElse(isCount, 0),
  /** Unix seconds; 0 when there is no record. */
  at: orElse(isCount, 0),
});
export type Cursor = Of<typeof cursor>;

const cursorsOf = (folder: MailFolder, reader: string): Documents<Cursor> =>
  folder.documents(cursor, join("cursors", folderOf(reader)));

/** What shows that the messages were read. */
export interface Evidence {
  /**
   * `ack`: the reader's own command. `run`: the stream of a run shows that the model has read them. `archive`: the messages belong to an
   * earlier agent of the same name.
   */
  by: "ack" | "run" | "archive";
  atMs: number;
}

/** How many records of a reader are kept. If the last one is damaged, the one before it counts. */
const KEPT = 2;
const NAME = /^([1-9]\d{0,8})\.json$/;

/** @throws a system error: then it is unknown how far the reader has read */
export function readCursor(folder: MailFolder, reader: string): Cursor {
  for (let before = ""; ; ) {
    const numbers = numbersOf(folder, reader);
    const n = numbers.at(-1) ?? 0;
    // A power cut may have emptied the last record: then the one before it counts.
    for (const number of numbers.toReversed()) {
      const record = cursorsOf(folder, reader).load(String(number));
      if (record === undefined) continue;
      const { upto, fails, at } = record;
      return { n, upto, fails, at };
    }
    // If the listing has changed, another process has removed these records and written newer ones.
    if (String(numbers) === before) return { n, upto: 0, fails: 0, at: 0 };
    before = String(numbers);
  }
}

/**
 * Notes that the reader has read all messages up to this number. Does nothing if this is known already.
 * @throws ErrMailboxDir, a system error
 */
export function moveCursor(
  folder: MailFolder,
  reader: string,
  upto: number,
  { by, atMs }: Evidence,
): void {
  // If a power cut removed these messages, later ones would get their numbers, and the reader would skip them.
  if (folder.isDurable) syncMessages(folder);
  for (;;) {
    const { n, upto: known } = readCursor(folder, reader);
    if (known >= upto) return;
    const cursor = { n: n + 1, upto, fails: 0, at: Math.floor(atMs / 1000) };
    if (publish(folder, reader, cursor, by)) return;
  }
}

/**
 * Notes that a wake-up for the mail above this cursor has ended without proof that it was read. The id of the next wake-up has the
 * number of the new record. Does nothing if the cursor has moved.
 * @throws ErrMailboxDir, a system error
 */
export function noteFailure(
  folder: MailFolder,
  reader: string,
  { n, upto, fails }: Cursor,
  atMs: number,
): void {
  const cursor = { n: n + 1, upto, fails: fails + 1, at: Math.floor(atMs / 1000) };
  publish(folder, reader, cursor, "failed wake-up");
}

/** @returns false when another process was faster */
function publish(folder: MailFolder, reader: string, cursor: Cursor, by: string): boolean {
  folder.make();
  const all = cursorsOf(folder, reader);
  const record = { v: 1, ...cursor, by };
  if (!all.create(String(cursor.n), record)) return false;
  for (const old of numbersOf(folder, reader).slice(0, -KEPT)) all.remove(String(old));
  return true;
}

function numbersOf(folder: MailFolder, reader: string): number[] {
  return listDirForSure(folder.path("cursors", folderOf(reader)))
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}
