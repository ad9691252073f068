/** Finds a message by its id in a range of a scope's segments. */
import type { MailFolder } from "./mail-folder.ts";
import { type Checked, decodeMessage, type Message, startOf } from "./message.ts";
import { mayHaveId } from "./segment-index.ts";
import { linesOf, newBuffer } from "./segment-lines.ts";
import { listSegments } from "./segments.ts";

const START: Checked = [0, 0];
/** Shared by all calls, because a supervisor looks for many ids. */
let buffer: Buffer | undefined;

/**
 * @param to only lines before this place are searched. It is the beginning of a line
 * @param from only lines at or after this place are searched. It is the beginning of a line
 * @throws a system error
 */
export function findMessage(
  folder: MailFolder,
  id: string,
  to: Checked,
  from: Checked = START,
): Message | undefined {
  const start = startOf(id);
  buffer ??= newBuffer();
  for (const segment of listSegments(folder)) {
    const { k } = segment;
    const isPart = k === from[0] || k === to[0];
    if (k < from[0] || k > to[0] || (!isPart && !mayHaveId(folder, segment, id))) continue;
    const place = { segment, offset: k === from[0] ? from[1] : 0, n: 0 };
    for (const line of linesOf(place, { any: [start] }, buffer)) {
      if (k === to[0] && line !== undefined && line.place[1] >= to[1]) break;
      // A torn line may also begin like this, so the whole line is decoded.
      if (line?.bytes.indexOf(start) !== 0) continue;
      const found = decodeMessage(line.bytes.toString("utf8"), folder.scope);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
