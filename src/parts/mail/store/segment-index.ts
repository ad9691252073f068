/**
 * Reads the index of a full segment, `messages.<k>.index`: the hashes of its ids, and for each name the places of its lines. So a search
 * for an id or for the mail of a reader need not read all messages. A full segment never changes, so every process writes the same
 * index. Without an index the segment itself is read.
 */
import { createHash } from "node:crypto";
import { parseObject } from "../../../core/json-object.ts";
import { KEYS } from "./line-filter.ts";
import type { MailFolder } from "./mail-folder.ts";
import { readBytes } from "./read-bytes.ts";
import type { LinePlace } from "./segment-lines.ts";
import { indexPathOf, type Segment } from "./segments.ts";

/** Some lines of a segment, in order, and where the segment ends. */
export interface Indexed {
  lines: readonly LinePlace[];
  /** The number of the next line, and where the segment ends (bytes). */
  nextN: number;
  end: number;
}

/** The beginning of the line with the hashes. */
const IDS = '\n{"ids":" ';
const HASH_CHARS = 8;
const NEWLINE = 0x0a;

/** True if a line of this segment may have this id. */
export function mayHaveId(folder: MailFolder, segment: Segment, id: string): boolean {
  const bytes = segment.isIndexed ? tryRead(folder, segment) : undefined;
  const from = bytes?.indexOf(IDS) ?? -1;
  // A damaged index has no line of hashes: then the segment must be searched.
  if (bytes === undefined || from === -1) return true;
  // Only the line of the hashes is searched: the lines after it are longer.
  return bytes.subarray(from, bytes.indexOf(NEWLINE, from + 1)).includes(` ${hashOf(id)} `);
}

/**
 * The lines of a segment that may have one of these keys.
 * @param keys as in `LineFilter`
 * @returns undefined when the segment has no index
 */
export function linesFor(
  folder: MailFolder,
  segment: Segment,
  keys: readonly string[],
): Indexed | undefined {
  const bytes = segment.isIndexed ? tryRead(folder, segment) : undefined;
  const head = bytes && parseObject(bytes.toString("utf8", 0, bytes.indexOf("\n")));
  const { next_n: nextN, end } = head ?? {};
  if (bytes === undefined || typeof nextN !== "number" || typeof end !== "number") return undefined;
  const found = new Map<number, LinePlace>();
  for (const key of [...keys, KEYS.other]) {
    const start = `\n{"for":${JSON.stringify(key)},`;
    const from = bytes.indexOf(start) + 1;
    if (from === 0) continue;
    const row = parseObject(bytes.toString("utf8", from, bytes.indexOf("\n", from)));
    const at = row?.["at"];
    if (!Array.isArray(at)) return undefined;
    for (const [n, offset, length] of at) found.set(n, { n, offset, length });
  }
  return { lines: [...found.values()].sort((a, b) => a.n - b.n), nextN, end };
}

/** Undefined when the index was removed, or cannot be read. */
function tryRead(folder: MailFolder, { k }: Segment): Buffer | undefined {
  try {
    return readBytes(indexPathOf(folder, k));
  } catch {
    return undefined;
  }
}

export function hashOf(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, HASH_CHARS);
}
