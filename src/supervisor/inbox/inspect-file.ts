/**
 * Judges one dropped file by its name, its kind and what it holds: accept it or reject it, now or later. It moves nothing. Tasks,
 * batches and commands share it, each with its own decoder.
 */
import { mayStillGrow } from "../../codec/json.ts";
import { MailchuteError } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { readInboxName } from "../../core/names.ts";
import { explainBadFile } from "../../mailbox/dropped-file.ts";
import type { FileFacts } from "../../mailbox/storage.ts";
import { pathIn, type Trays } from "../../mailbox/trays.ts";

export interface DropRules<T> {
  /** Owners whose files are accepted, beside our own uid and root. */
  uids: readonly number[];
  /** How large a batch may be (bytes), or why there are no batches. */
  batches: number | string;
  /** @throws MailchuteError when the bytes are none of its kind */
  decode(bytes: Buffer, id: string, path: string): T;
}

/**
 * When a verdict counts. "now": at once. "closed": once no process has the file open for writing. "quiet": once it has not changed
 * for a while, either. Until then its writer may not have finished.
 */
export type When = "now" | "closed" | "quiet";

export interface Fault {
  reason: string;
  offset?: number | undefined;
}

export interface Seen {
  id: string;
  isBatch: boolean;
  facts: FileFacts;
  when: When;
}

export type Inspected<T> =
  /** Another program's file: it stays where it is. */
  | { is: "ignored" }
  /** No file under this name can be accepted. */
  | ({ is: "misnamed" } & Fault)
  | ({ is: "rejected" } & Seen & Fault)
  /** It has a second name: a submit is under way, or died. */
  | ({ is: "linked" } & Seen)
  /** `value` is undefined for a batch. */
  | ({ is: "accepted"; value: T | undefined } & Seen);

/** A batch that is smaller is looked into before it is accepted (bytes). */
const BATCH_LOOK_BYTES = 64 * 1024;

/** @throws a system error when the file is gone or cannot be read */
export function inspectFile<T>(trays: Trays, name: string, rules: DropRules<T>): Inspected<T> {
  const meaning = readInboxName(name);
  if (meaning.kind === "ignored") return { is: "ignored" };
  if (meaning.kind === "bad") return { is: "misnamed", reason: meaning.reason };
  const { id } = meaning;
  const { batches } = rules;
  const isBatch = meaning.isBatch === true;
  if (isBatch && typeof batches === "string") return { is: "misnamed", reason: batches };
  const bytesMax = isBatch ? Number(batches) : TASK_BYTES_MAX;
  const path = pathIn(trays.inbox, name);
  // Of a batch the beginning is enough, and only when that is all of it.
  const { facts, bytes } = trays.storage.read(path, isBatch ? BATCH_LOOK_BYTES : bytesMax);
  const seen = { id, isBatch, facts };
  const reject = (when: When, why: Fault) => ({ is: "rejected", ...seen, when, ...why }) as const;
  const fault = explainBadFile(facts, rules.uids, bytesMax);
  // A program that still appends to a file that is too large would begin another file of this name.
  const isTooLarge = facts.kind === "file" && facts.size > bytesMax;
  if (fault !== undefined) return reject(isTooLarge ? "quiet" : "now", { reason: fault });
  if (bytes === undefined && !isBatch) return reject("now", { reason: "the file cannot be read" });
  if (facts.nlink > 1) return { is: "linked", ...seen, when: "quiet" };
  if (isBatch) {
    const reason = bytes === undefined ? undefined : explainBadBatch(bytes);
    if (reason !== undefined) return reject("quiet", { reason });
    // A batch shows by nothing in it that it is whole. One that was moved here changed later than its content.
    const when = facts.ctimeMs > facts.mtimeMs ? "closed" : "quiet";
    return { is: "accepted", ...seen, when, value: undefined };
  }
  if (bytes === undefined || bytes.length !== facts.size)
    return reject("quiet", { reason: "the file changes while it is read" });
  try {
    return { is: "accepted", ...seen, when: "now", value: rules.decode(bytes, id, path) };
  } catch (error) {
    if (!(error instanceof MailchuteError)) throw error;
    const fault = { reason: error.message, offset: error.offset };
    return reject(mayStillGrow(error) ? "quiet" : "now", fault);
  }
}

/** What makes all of a small batch unreadable; a large one shows it line by line. */
function explainBadBatch(bytes: Buffer): string | undefined {
  if (bytes.toString("latin1").trim() === "") return "the batch holds no line";
  return bytes.includes(0)
    ? "the batch holds NUL bytes; if it is UTF-16 or UTF-32, save it as UTF-8"
    : undefined;
}
