/** A scope with very many messages, written at once: sending them would take half a minute. */
import fs from "node:fs";
import type { Scope } from "../../../src/parts/mail/scope/scope.ts";
import type { MailFolder } from "../../../src/parts/mail/store/mail-folder.ts";
import {
  decodeMessage,
  encodeMessage,
  type Message,
} from "../../../src/parts/mail/store/message.ts";
import {
  currentSegment,
  makeNext,
  SEAL,
  SEGMENT_BYTES,
} from "../../../src/parts/mail/store/segments.ts";

/** About 480 bytes each, as a short message has. */
const TEXT = "about the schema ".repeat(10);

/** One in which nothing stands. */
export function blankMessage(scope: Scope): Message {
  return decodeMessage('{"id":"blank"}', scope) as Message;
}

/**
 * Message n, from 1, has the id `m-<n>`, and goes to one name after the other.
 * @param more fields of message n
 */
export function fillScope(
  folder: MailFolder,
  count: number,
  names: readonly string[],
  more: (n: number) => Partial<Message> = () => ({}),
): void {
  const { project, branch } = folder.scope;
  const addressOf = (name: string): string => `${project}:${branch}:${name}`;
  const blank = blankMessage(folder.scope);
  let lines: string[] = [];
  currentSegment(folder);
  let bytes = 0;
  for (let n = 1; n <= count; n++) {
    const line = `${encodeMessage({
      ...blank,
      id: `m-${n}`,
      from_agent: names[(n * 3) % names.length] ?? "",
      via: "run",
      to: [addressOf(names[n % names.length] ?? "")],
      content: `message ${n} ${TEXT}`,
      created_at: 1_795_500_000 + n,
      ...more(n),
    })}\n`;
    lines.push(line);
    bytes += line.length;
    if (bytes < SEGMENT_BYTES && n < count) continue;
    const isFull = bytes >= SEGMENT_BYTES;
    const segment = currentSegment(folder);
    fs.appendFileSync(segment.path, `${lines.join("")}${isFull ? `\n${SEAL}\n` : ""}`);
    if (isFull) makeNext(folder, segment);
    lines = [];
    bytes = 0;
  }
}
