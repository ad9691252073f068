/** Reads a person's list file, and writes ticks into it. It never overwrites a text that a person saved in between. */
import { isUtf8 } from "node:buffer";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidList, ErrIo, isSystemError, messageOf, systemCode } from "../../core/errors.ts";
import { lookInto, statOf } from "../../host/regular-file.ts";
import { replaceText } from "../../host/replace-document.ts";

const LIST_BYTES_MAX = 1024 * 1024;
/** A file whose last write is younger than this may be incomplete (ms). */
const QUIET_MS = 50;
const QUIET_WAIT_MS_MAX = 2000;
const POLL_MS = 10;

export interface ListText {
  /** Without symbolic links. */
  path: string;
  text: string;
}

/** The path without symbolic links, even if the file itself is missing. @throws ErrIo */
export function realListPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw refused(path, error);
    const dir = dirname(path);
    return join(fs.existsSync(dir) ? fs.realpathSync(dir) : dir, basename(path));
  }
}

/** Reads the list when its save is complete. @throws ErrInvalidList, ErrIo */
export async function readList(path: string): Promise<ListText> {
  const deadline = performance.now() + QUIET_WAIT_MS_MAX;
  for (;;) {
    const { bytes, mtimeMs } = readBytes(path);
    const quietMs = Math.abs(Date.now() - mtimeMs);
    if (quietMs >= QUIET_MS || performance.now() > deadline)
      return { path: realListPath(path), text: decode(bytes, path) };
    await wait(POLL_MS);
  }
}

/**
 * Replaces the text, with the same mode and owner.
 * @returns false when the file no longer holds the text of `list`: read it again
 * @throws ErrIo: then the file is unchanged
 */
export function replaceList(list: ListText, text: string): boolean {
  const { path } = list;
  // A separate folder, because a person may have files of any name beside the list.
  const stagingDir = join(dirname(path), `.${basename(path)}.mailchute`);
  const base = Buffer.from(list.text);
  const like = statOf(path);
  if (like === undefined) return false;
  try {
    replaceText(path, text, {
      stagingDir,
      isDurable: true,
      like,
      beforePublish: () => {
        if (!readBytes(path).bytes.equals(base)) throw new ChangedError();
      },
    });
    return true;
  } catch (error) {
    if (error instanceof ChangedError || systemCode(error) === "ENOENT") return false;
    if (error instanceof ErrInvalidList) throw error;
    throw new ErrIo(`cannot tick the list: ${messageOf(error)}`, {
      path,
      phase: "tick",
      cause: error,
      hint: "check the disk and the rights of its directory; the list is as it was",
    });
  } finally {
    fs.rmSync(stagingDir, { recursive: true, force: true });
  }
}

/** Thrown when a person saved the file in between. */
class ChangedError extends Error {}

function readBytes(path: string): { bytes: Buffer; mtimeMs: number } {
  try {
    const { stats, bytes } = lookInto(path, { isNamed: true, bytesMax: LIST_BYTES_MAX });
    if (stats.isDirectory())
      throw invalid(path, "it is a directory, and no list", "name a Markdown file in it");
    if (!stats.isFile()) throw invalid(path, "it is not a regular file", "name a Markdown file");
    if (bytes === undefined)
      throw invalid(
        path,
        `the list has ${stats.size} bytes, more than the limit of ${LIST_BYTES_MAX}`,
        "split it, or take enqueue --batch for very many small tasks",
      );
    return { bytes, mtimeMs: stats.mtimeMs };
  } catch (error) {
    throw isSystemError(error) ? refused(path, error) : error;
  }
}

function decode(bytes: Buffer, path: string): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let line = 0;
  for (let from = 0, end = 0; end !== -1; from = end + 1) {
    line++;
    end = bytes.indexOf(0x0a, from);
    if (!isUtf8(bytes.subarray(from, end === -1 ? undefined : end))) break;
  }
  throw invalid(path, `line ${line} of the list is not UTF-8`, "save the file as UTF-8");
}

function invalid(path: string, message: string, hint: string): ErrInvalidList {
  return new ErrInvalidList(message, { path, phase: "read", hint });
}

function refused(path: string, error: unknown): ErrIo {
  const isMissing = systemCode(error) === "ENOENT";
  return new ErrIo(isMissing ? "there is no such file" : `cannot read it: ${messageOf(error)}`, {
    path,
    phase: "read",
    cause: error,
    hint: isMissing ? "check the name of the list" : "check its rights",
  });
}
