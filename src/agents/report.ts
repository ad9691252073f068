/** The report of a program about its run: a result file, or the last valid `<result>{…}</result>` block on stdout. */
import fs from "node:fs";
import { parseObject } from "../core/json-object.ts";
import {
  OUTPUT_DEPTH_MAX,
  OUTPUT_TAIL_BYTES_MAX,
  RESULT_SCAN_BYTES_MAX,
  TASK_BYTES_MAX,
} from "../core/limits.ts";
import { isDeeperThan } from "../core/nesting.ts";
import { openToRead, readRegularText } from "../host/regular-file.ts";

export interface ProgramReport {
  /** The result object's `output`, or the object itself, or the tail of stdout. */
  output: unknown;
  verdict: string;
  verdictReason: string;
  /** `status` of the result object, when it has one. */
  status: string | null;
  /** First line of explanation, when it has one. */
  message: string | null;
}

/**
 * Reads the report of a run that ended. Missing and broken parts are left out.
 * @param stdoutFrom where its own part of the log begins (bytes)
 */
export function readReport(resultFile: string, stdoutLog: string, stdoutFrom = 0): ProgramReport {
  const tail = readTail(stdoutLog, RESULT_SCAN_BYTES_MAX, stdoutFrom);
  const said = readResultFile(resultFile) ?? lastResultBlock(tail);
  const text = tail.slice(-OUTPUT_TAIL_BYTES_MAX);
  if (said === undefined)
    return { output: text, verdict: "unknown", verdictReason: "", status: null, message: null };
  return {
    output: said["output"] ?? said,
    verdict: textOf(said["verdict"]) ?? "unknown",
    verdictReason: textOf(said["verdict_reason"]) ?? textOf(said["summary"]) ?? "",
    status: textOf(said["status"]),
    message: textOf(said["error"]) ?? textOf(said["summary"]),
  };
}

/** What a program reported, without checks: the object in its result file, or those in its `<result>` blocks, the last first. */
export function readResults(
  resultFile: string,
  stdoutLog: string,
  stdoutFrom: number,
): Record<string, unknown>[] {
  const own = readResultFile(resultFile);
  return own === undefined
    ? [...resultBlocks(readTail(stdoutLog, RESULT_SCAN_BYTES_MAX, stdoutFrom))]
    : [own];
}

/** The last `<result>` block that holds a JSON object: a prompt may echo an example before it. */
export function lastResultBlock(text: string): Record<string, unknown> | undefined {
  const [last] = resultBlocks(text);
  return last;
}

/** It tries at most this many ends of blocks, the last first. For each end, it searches all text that may belong to the block. */
const BLOCKS_TRIED_MAX = 64;

function* resultBlocks(text: string): Generator<Record<string, unknown>> {
  let tried = 0;
  for (
    let end = text.lastIndexOf("</result>");
    end !== -1;
    end = end === 0 ? -1 : text.lastIndexOf("</result>", end - 1)
  ) {
    if (!endsLikeObject(text, end)) continue;
    const start = text.lastIndexOf("<result>", end);
    if (start === -1 || ++tried > BLOCKS_TRIED_MAX) return;
    const value = parseReport(text.slice(start + "<result>".length, end));
    if (value !== undefined) yield value;
  }
}

/** True when a closing brace comes before `end`, with nothing but white space between them. */
function endsLikeObject(text: string, end: number): boolean {
  for (let at = end - 1; at >= 0; at--) {
    const c = text.charCodeAt(at);
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return c === 0x7d;
  }
  return false;
}

/** The last `bytesMax` bytes of a file after its first `from` ones, as text, cut at a character; "" when there is none. */
export function readTail(path: string, bytesMax: number, from = 0): string {
  try {
    const fd = openToRead(path);
    try {
      const size = fs.fstatSync(fd).size - from;
      if (size <= 0) return "";
      const buffer = Buffer.allocUnsafe(Math.min(size, bytesMax));
      const got = fs.readSync(fd, buffer, 0, buffer.length, from + size - buffer.length);
      let skip = 0;
      if (size > bytesMax) while (skip < 4 && ((buffer[skip] ?? 0) & 0xc0) === 0x80) skip++;
      return buffer.toString("utf8", skip, got);
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return "";
  }
}

function readResultFile(path: string): Record<string, unknown> | undefined {
  try {
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile() || stats.size > TASK_BYTES_MAX) return undefined;
    return parseReport(readRegularText(path));
  } catch {
    return undefined;
  }
}

function parseReport(text: string): Record<string, unknown> | undefined {
  const value = parseObject(text);
  // A value that nests too deep can be read, but neither written nor shown.
  return isDeeperThan(value, OUTPUT_DEPTH_MAX) ? undefined : value;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
