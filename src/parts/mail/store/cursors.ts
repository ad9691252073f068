/**
 * Records how far a reader has provably read the messages of a scope: `cursors/<reader>/<n>.json`. The highest `<n>` counts. A record
 * is never changed. The next record is linked as n+1. Only one process can do this, so two processes never overwrite each other.
 */
import fs from "node:fs";
import { loadDocument } from "../../../host/documents.ts";
import { listDirForSure } from "../../../host/list-dir.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "./mail-folder.ts";
import { syncMessages } from "./segments.ts";

export interface Cursor {
  /** The number of the record; 0 when there is none. */
  n: number;
  /** The number of the last message that was read. */
  upto: number;
  /** How many wake-ups for the mail above `upto` have failed. */
  fails: number;
  /** Unix seconds; 0 when there is no record. */
  at: number;
}

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
      const record = loadDocument<Cursor>(pathOf(folder, reader, number));
      if (typeof record?.upto !== "number") continue;
      const { upto, fails, at } = record;
      return { n, upto: numberOr0(upto), fails: numberOr0(fails), at: numberOr0(at) };
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
  const text = `${JSON.stringify({ v: 1, ...cursor, by })}\n`;
  if (!folder.publish(text, "cursors", folderOf(reader), `${cursor.n}.json`)) return false;
  for (const old of numbersOf(folder, reader).slice(0, -KEPT))
    fs.rmSync(pathOf(folder, reader, old), { force: true });
  return true;
}

function numbersOf(folder: MailFolder, reader: string): number[] {
  return listDirForSure(folder.path("cursors", folderOf(reader)))
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

function pathOf(folder: MailFolder, reader: string, n: number): string {
  return folder.path("cursors", folderOf(reader), `${n}.json`);
}

function numberOr0(value: unknown): number {
  return typeof value === "number" && value >= 0 ? value : 0;
}
