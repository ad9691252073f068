/** Reads the stream of a coding agent's run as it is written, and prints it as a conversation. Changes nothing. */
import { join } from "node:path";
import { Conversation } from "../../agents/stream/conversation.ts";
import type { ReadLine } from "../../agents/stream/facts.ts";
import { LineTail } from "../../agents/stream/line-tail.ts";
import { parseReadTimes, timesFileOf } from "../../agents/stream/read-times.ts";
import { readRegularText } from "../../host/regular-file.ts";
import { entryLines, type Page } from "./conversation-lines.ts";

/** How much is read before it is printed (bytes). */
const SLICE_BYTES = 1024 * 1024;

export class ConversationReader {
  readonly path: string;
  private readonly conversation = new Conversation();
  private readonly tail: LineTail;
  private lines: { line: string; end: number }[] = [];

  constructor(
    runDir: string,
    private readonly read: ReadLine,
    private readonly page: Page,
    private readonly print: (text: string) => Promise<void>,
  ) {
    this.path = join(runDir, "events.jsonl");
    this.tail = new LineTail(this.path, 0, (line, end) => this.lines.push({ line, end }));
  }

  /** Prints the new entries. @param isLive true while the run goes on: then an entry without a time came just now */
  async drain(isLive = false): Promise<void> {
    while (this.tail.read(SLICE_BYTES) > 0) await this.flush(isLive);
  }

  async end(): Promise<void> {
    await this.drain();
    this.tail.end();
    await this.flush(false);
  }

  private async flush(isLive: boolean): Promise<void> {
    const taken = this.lines;
    if (taken.length === 0) return;
    this.lines = [];
    const times = parseReadTimes(textOf(timesFileOf(this.path)));
    const nowMs = isLive ? Date.now() : undefined;
    const printed = taken.flatMap(({ line, end }) =>
      this.conversation
        .take(line, this.read(line))
        .flatMap((entry) => entryLines(entry, times.at(end) ?? nowMs, this.page)),
    );
    if (printed.length > 0) await this.print(`${printed.join("\n")}\n`);
  }
}

function textOf(path: string): string {
  try {
    return readRegularText(path);
  } catch {
    return "";
  }
}
