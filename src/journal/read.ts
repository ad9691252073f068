/**
 * Reads JSONL files of any size, even damaged ones. It skips and counts lines that are no record, and ignores NUL bytes. It loads
 * the streams of Node, so code that runs at the start of every command must not import it.
 */
import fs from "node:fs";
import { Transform, type TransformCallback } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { parseObject } from "../core/json-object.ts";
import { streamOf } from "../host/regular-file.ts";
import { firstToRead, openJournal } from "./open-journal.ts";

export interface ReadCounts {
  records: number;
  /** Lines that are not JSON objects. */
  bad: number;
}

/** A line longer than this (characters) is no record. It is skipped, and not kept in memory. */
const LINE_CHARS_MAX = 4 * 1024 * 1024;

/** Passes on only lines that hold one JSON object, because ndjson stops or crashes at any other line. */
class LineGuard extends Transform {
  private readonly decoder = new StringDecoder("utf8");
  private rest = "";
  private isSkipping = false;

  constructor(readonly counts: ReadCounts) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    // What is skipped is not decoded: a file of 10 GB without a newline would hold up the reader for seconds.
    const from = this.isSkipping ? chunk.indexOf("\n") : 0;
    if (from !== -1) this.add(this.decoder.write(chunk.subarray(from)));
    done();
  }

  private add(piece: string): void {
    if (piece.includes("\n")) {
      const lines = (this.rest + piece).split("\n");
      this.rest = lines.pop() ?? "";
      for (const line of lines) this.line(line);
    } else {
      // The piece is only collected. Splitting a line of megabytes again after each piece would take too long.
      this.rest += piece;
    }
    if (this.rest.length > LINE_CHARS_MAX) {
      this.isSkipping = true;
      this.rest = "";
      // A character that this chunk cut in two belongs to the line that is skipped.
      this.decoder.end();
    }
  }

  override _flush(done: TransformCallback): void {
    // A last line without a newline is torn or still being written. It counts only if it is a complete object.
    if (this.rest !== "" || this.isSkipping) this.line(this.rest);
    done();
  }

  private line(raw: string): void {
    if (this.isSkipping) {
      this.isSkipping = false;
      this.counts.bad++;
      return;
    }
    const line = raw.includes("\0") ? raw.replaceAll("\0", "") : raw;
    if (line.trim() === "") return;
    if (parseObject(line) === undefined) {
      this.counts.bad++;
      return;
    }
    this.counts.records++;
    this.push(`${line}\n`);
  }
}

/** Yields the records of a journal in order. A missing file has no records. @throws a system error; EINVAL: not a regular file */
export async function* readJournal(
  path: string,
  counts: ReadCounts = { records: 0, bad: 0 },
  start = 0,
): AsyncGenerator<Record<string, unknown>> {
  // Loaded at the first use, because it loads a whole library of streams.
  const { default: ndjson } = await import("ndjson");
  const fd = openJournal(path);
  if (fd === undefined) return;
  const source = streamOf(fd, firstToRead(fs.fstatSync(fd).size, start));
  const guard = new LineGuard(counts);
  const parser = ndjson.parse();
  source.on("error", (error) => guard.destroy(error));
  guard.on("error", (error) => parser.destroy(error));
  try {
    for await (const record of source.pipe(guard).pipe(parser))
      yield record as Record<string, unknown>;
  } finally {
    // Closes the file also when the caller stops reading before its end.
    source.destroy();
    guard.destroy();
  }
}
