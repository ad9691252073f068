/** Shows the stream of a coding agent as text: what it says and does. The reader of a kind is loaded at its first use. */
import { join } from "node:path";
import { Conversation, type Entry, type EntryKind } from "../../agents/stream/conversation.ts";
import type { ReadLine } from "../../agents/stream/facts.ts";
import { sessionOfRun } from "../../agents/stream/session-file.ts";
import { loadKind } from "../../app/agent-kinds.ts";
import { readEnd, statOf } from "../../host/regular-file.ts";
import { entryLines } from "./conversation-lines.ts";

const END_BYTES = 32 * 1024;
/** The kinds of entries that show what an agent is doing. */
const TELLING: ReadonlySet<EntryKind> = new Set(["said", "call", "change", "failure"]);
/** The width of lines that are not wrapped. */
const UNBROKEN = undefined;

export class AgentLines {
  private readonly readers = new Map<string, ReadLine | "loading">();
  private readonly kinds = new Map<string, string | undefined>();
  private readonly loads = new Map<string, Promise<void>>();
  private readonly last = new Map<string, { size: number; line: string | null }>();

  /** The reader for `events.jsonl` of this run; undefined when no coding agent ran there, or the reader is not loaded yet. */
  readerOf(runDir: string): ReadLine | undefined {
    if (!this.kinds.has(runDir)) this.kinds.set(runDir, sessionOfRun(runDir)?.kind);
    const kind = this.kinds.get(runDir);
    if (kind === undefined) {
      // A run shows its kind only after it has begun.
      this.kinds.delete(runDir);
      return undefined;
    }
    const reader = this.readers.get(kind);
    if (reader === undefined) this.load(kind);
    return reader === "loading" ? undefined : reader;
  }

  /** Resolves when the reader of this run is loaded, if it has one. */
  async ready(runDir: string): Promise<void> {
    if (this.readerOf(runDir) === undefined) await this.loads.get(this.kinds.get(runDir) ?? "");
  }

  /** What the agent last said or did. */
  lastLineOf(runDir: string): string | null {
    const path = join(runDir, "events.jsonl");
    const size = statOf(path)?.size;
    if (size === undefined) return null;
    const before = this.last.get(runDir);
    if (before?.size === size) return before.line;
    const read = this.readerOf(runDir);
    if (read === undefined) return null;
    const lines = readEnd(path, END_BYTES).split("\n").reverse();
    const line = firstOf(lines, (one) => {
      const entries = entriesOf(new Conversation(), read, one);
      return entries.findLast(({ kind }) => TELLING.has(kind))?.text.split("\n")[0];
    });
    this.last.set(runDir, { size, line: line ?? null });
    return line ?? null;
  }

  /** Forgets runs that are over. */
  keepOnly(runDirs: ReadonlySet<string>): void {
    for (const kept of [this.kinds, this.last])
      for (const runDir of kept.keys()) if (!runDirs.has(runDir)) kept.delete(runDir);
  }

  private load(kind: string): void {
    this.readers.set(kind, "loading");
    const loading = loadKind(kind).then(
      (loaded) => {
        const read = loaded?.newReader();
        if (read !== undefined) this.readers.set(kind, read);
      },
      () => {
        // Without a reader, its stream is shown as a plain log.
      },
    );
    this.loads.set(kind, loading);
  }
}

/** What a line of the stream adds to the conversation. */
export function entriesOf(talk: Conversation, read: ReadLine, raw: string): Entry[] {
  return talk.take(raw, readSafely(read, raw));
}

/** A line of the stream as lines for people. @param width cells; infinite: no line is wrapped @param atMs when it came (epoch ms) */
export function conversationLines(
  read: ReadLine,
  raw: string,
  { width, colour }: { width: number; colour: boolean },
  atMs?: number,
): string[] {
  const page = { width: Number.isFinite(width) ? width : UNBROKEN, colour };
  return entriesOf(new Conversation(), read, raw).flatMap((entry) => entryLines(entry, atMs, page));
}

/** Reads a line that may be cut: the first line of a page may have lost its beginning. */
function readSafely(read: ReadLine, line: string): ReturnType<ReadLine> {
  try {
    return read(line);
  } catch {
    return [];
  }
}

function firstOf<T>(
  lines: readonly string[],
  find: (line: string) => T | undefined,
): T | undefined {
  for (const line of lines) {
    const found = line.trim() === "" ? undefined : find(line);
    if (found !== undefined) return found;
  }
  return undefined;
}
