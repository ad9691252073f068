/** Writes the indexes of full segments: see `segment-index.ts`. A separate file, because most commands write none. */
import fs from "node:fs";
import { setImmediate as pause } from "node:timers/promises";
import { parseObject } from "../../../core/json-object.ts";
import { writeNewLater } from "../../../host/regular-file.ts";
import { randomToken } from "../../../mailbox/files/random.ts";
import { isOurs, KEYS } from "./line-filter.ts";
import type { MailFolder } from "./mail-folder.ts";
import { hashOf } from "./segment-index.ts";
import { linesOf, newBuffer } from "./segment-lines.ts";
import { headOf, indexPathOf, listSegments, type Segment } from "./segments.ts";

const STAGED_CHARS = 16;
/** Pauses for other work after this long (ms). */
const SLICE_MS = 2;

/**
 * Writes the missing indexes, the newest first, and pauses for other work.
 * @param countMax how many indexes it writes at most
 * @throws a system error
 */
export async function indexFull(
  folder: MailFolder,
  countMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  const full = listSegments(folder).slice(0, -1).reverse();
  for (const segment of full.filter(({ isIndexed }) => !isIndexed).slice(0, countMax))
    await writeIndex(folder, segment);
}

async function writeIndex(folder: MailFolder, segment: Segment): Promise<void> {
  const text = await indexOf(folder, segment);
  if (text === undefined) return;
  folder.makeDir(".tmp");
  const staged = folder.path(".tmp", randomToken(STAGED_CHARS));
  const path = indexPathOf(folder, segment.k);
  try {
    // Always flushed: an empty file after a power cut would say that there is no mail. Asynchronous, so that other work goes on.
    await writeNewLater(staged, text);
    fs.renameSync(staged, path);
  } finally {
    fs.rmSync(staged, { force: true });
  }
  // Retention removes the index first, so it may have missed this one.
  if (!fs.existsSync(segment.path)) fs.rmSync(path, { force: true });
}

/** Undefined when retention has removed the segment. */
async function indexOf(folder: MailFolder, segment: Segment): Promise<string | undefined> {
  const head = headOf(segment);
  if (head === undefined) return undefined;
  const place = { segment, offset: head.from, n: head.first };
  const hashes: string[] = [];
  const rows = new Map<string, number[][]>();
  let sinceMs = performance.now();
  for (const line of linesOf(place, undefined, newBuffer())) {
    if (performance.now() - sinceMs >= SLICE_MS) {
      await pause();
      sinceMs = performance.now();
    }
    // An empty line ends a torn one.
    if (line === undefined || line.bytes.length === 0) continue;
    const value = parseObject(line.bytes.toString("utf8"));
    if (typeof value?.["id"] === "string") hashes.push(hashOf(value["id"]));
    for (const key of keysOf(value, line.bytes, folder)) {
      const row = rows.get(key) ?? [];
      rows.set(key, row);
      row.push([line.n, line.place[1], line.bytes.length]);
    }
  }
  const texts = [
    { v: 1, next_n: place.n, end: place.offset },
    { ids: ` ${hashes.join(" ")} ` },
    ...Array.from(rows, ([key, at]) => ({ for: key, at })),
  ];
  return texts.map((one) => `${JSON.stringify(one)}\n`).join("");
}

function keysOf(
  value: Record<string, unknown> | undefined,
  bytes: Buffer,
  { scope }: MailFolder,
): Set<string> {
  if (value === undefined || !isOurs(bytes, 0, bytes.length)) return new Set([KEYS.other]);
  const { to, mentions, project, requires_human: isForHuman } = value;
  return new Set([
    ...[to, mentions].flat().filter((one) => typeof one === "string"),
    ...(isForHuman === true ? [KEYS.human] : []),
    ...(project === scope.project ? [] : [KEYS.foreign]),
  ]);
}
