/** Reads a plan that a person or program saved, and judges whether the save is complete. */
import { ErrInvalidRoadmap, ErrIo, messageOf, systemCode } from "../../../core/errors.ts";
import { exactStatOf, readRegular } from "../../../host/regular-file.ts";
import { keyAt, keyOf } from "./file-facts.ts";

/** A larger plan is refused without reading it (bytes). */
const ROADMAP_BYTES_MAX = 16 * 1024 * 1024;
/** A text that did not change for this long is complete (ms). Some editors empty the file before they write it. */
export const SETTLED_MS = 30;
/** A text that became empty or much shorter must be quiet longer (ms): its writer may be slow, and half a plan is valid YAML. */
const SHORTER_SETTLED_MS = 1000;
const MUCH_SHORTER = 0.9;
/** After this time the text is read even if it is not quiet (ms), because a program may save it again and again. */
const UNSETTLED_MS_MAX = 2000;

export interface Saved {
  /** See FileStamp. */
  key: string;
  /** Epoch ms. */
  mtimeMs: number;
  /** Undefined if the file was saved again while it was read. */
  bytes: Buffer | undefined;
}

/**
 * Reads the file; undefined if there is none.
 * @throws ErrInvalidRoadmap too large, not a regular file · ErrIo cannot be read
 */
export function readSaved(path: string): Saved | undefined {
  try {
    const before = exactStatOf(path);
    if (before === undefined) return undefined;
    const bytes = readRegular(path, { isNamed: true, bytesMax: ROADMAP_BYTES_MAX });
    const key = keyOf(before);
    const isStill = keyAt(path) === key;
    return { key, mtimeMs: Number(before.mtimeMs), bytes: isStill ? bytes : undefined };
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT") return undefined;
    const message = `cannot read the roadmap: ${messageOf(error)}`;
    const details = { path, phase: "read", cause: error };
    if (code === "EINVAL" || code === "EFBIG") throw new ErrInvalidRoadmap(message, details);
    throw new ErrIo(message, { ...details, hint: "check its rights" });
  }
}

/**
 * True if the save is complete, as far as one can know.
 * @param quietMs how long the file has not changed
 * @param waitedMs how long the caller has tried to read it
 * @param lastBytes size of the previous text
 */
export function isWhole(
  bytes: Buffer,
  { quietMs, waitedMs, lastBytes }: { quietMs: number; waitedMs: number; lastBytes: number },
): boolean {
  const isShorter = bytes.length === 0 || bytes.length < MUCH_SHORTER * lastBytes;
  return quietMs >= (isShorter ? SHORTER_SETTLED_MS : SETTLED_MS) || waitedMs > UNSETTLED_MS_MAX;
}

/** @throws ErrInvalidRoadmap not UTF-8 */
export function decodeSaved(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new ErrInvalidRoadmap("the roadmap is not UTF-8", {
      path,
      phase: "read",
      cause: error,
      hint: "save it as UTF-8",
    });
  }
}
