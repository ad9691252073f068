/**
 * How far a reader has provably read the messages of a scope: `cursors/<reader>/<n>.json`, the highest `<n>` counts. A record is never
 * changed. The next one is linked as n+1, which only one process can do, so no evidence is lost between two processes.
 */
import fs from "node:fs";
import { readDocument } from "../../host/documents.ts";
import { listDir } from "../../host/list-dir.ts";
import { syncMessages } from "./append-message.ts";
import type { MailFolder } from "./mail-folder.ts";
import { folderOf } from "./scope.ts";

export interface Cursor {
  /** The number of the record; 0 when there is none. */
  n: number;
  /** The number of the last message that was read. */
  upto: number;
  /** How many wake-ups at this cursor have failed. */
  fails: number;
}

/** What shows that the messages were read. */
export interface Evidence {
  /** `ack`: the reader's own command. `archive`: the messages are of an earlier agent of that name. */
  by: "ack" | "archive";
  atMs: number;
}

/** So many records of a reader stay: the one before the last says what was known when the last was made. */
const KEPT = 2;
const NAME = /^([1-9]\d{0,8})\.json$/;

export function readCursor(folder: MailFolder, reader: string): Cursor {
  const n = numbersOf(folder, reader).at(-1) ?? 0;
  const found = n === 0 ? undefined : readDocument<Cursor>(pathOf(folder, reader, n));
  return { n, upto: numberOr0(found?.upto), fails: numberOr0(found?.fails) };
}

/**
 * Notes that the reader has read all messages up to this number. Does nothing when that is known.
 * @throws ErrMailboxDir, a system error
 */
export function moveCursor(
  folder: MailFolder,
  reader: string,
  upto: number,
  { by, atMs }: Evidence,
): void {
  // If these messages went in a power cut, others would get their numbers, and the reader would not read them.
  if (folder.isDurable) syncMessages(folder);
  for (;;) {
    const { n, upto: known } = readCursor(folder, reader);
    if (known >= upto) return;
    const record = { v: 1, n: n + 1, upto, fails: 0, by, at: Math.floor(atMs / 1000) };
    const text = `${JSON.stringify(record)}\n`;
    if (!folder.publish(text, "cursors", folderOf(reader), `${n + 1}.json`)) continue;
    for (const old of numbersOf(folder, reader).slice(0, -KEPT))
      fs.rmSync(pathOf(folder, reader, old), { force: true });
    return;
  }
}

function numbersOf(folder: MailFolder, reader: string): number[] {
  return listDir(folder.path("cursors", folderOf(reader)))
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
