/**
 * Judges one dropped file by its name, its kind and its content: accept or reject it, now or later. It moves nothing. Tasks,
 * batches and commands use it, each with its own decoder.
 */
import { mayStillGrow } from "../../codec/json.ts";
import { MailchuteError } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { readInboxName } from "../../core/names.ts";
import { explainBadFile } from "../../mailbox/files/dropped-file.ts";
import type { FileFacts } from "../../mailbox/files/storage.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";

export interface DropRules<T> {
  /** Owners whose files are accepted, besides our own uid and root. */
  uids: readonly number[];
  /** The largest batch (bytes), or the reason why batches are not accepted. */
  batches: number | string;
  /** @throws MailchuteError when the bytes hold no valid task or command */
  decode(bytes: Buffer, id: string, path: string): T;
}

/**
 * When a verdict can be used. "now": at once. "closed": once no process has the file open for writing. "quiet": once the file has
 * also not changed for a while. Until then its writer may not have finished.
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
  /** No file with this name can be accepted. */
  | ({ is: "misnamed" } & Fault)
  | ({ is: "rejected" } & Seen & Fault)
  /** It has a second name: a submit is in progress, or was interrupted. */
  | ({ is: "linked" } & Seen)
  /** `value` is undefined for a batch. */
  | ({ is: "accepted"; value: T | undefined } & Seen);

/** A batch of at most this size (bytes) is checked before it is accepted. */
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
  // Of a larger batch nothing is read here: its lines are checked when it runs.
  const { facts, bytes } = trays.storage.read(path, isBatch ? BATCH_LOOK_BYTES : bytesMax);
  const seen = { id, isBatch, facts };
  const reject = (when: When, why: Fault) => ({ is: "rejected", ...seen, when, ...why }) as const;
  const fault = explainBadFile(facts, rules.uids, bytesMax);
  // If a file that is too large were moved while a program still appends, the program would start another file with this name.
  const isTooLarge = facts.kind === "file" && facts.size > bytesMax;
  if (fault !== undefined) return reject(isTooLarge ? "quiet" : "now", { reason: fault });
  if (bytes === undefined && !isBatch) return reject("now", { reason: "the file cannot be read" });
  if (facts.nlink > 1) return { is: "linked", ...seen, when: "quiet" };
  if (isBatch) {
    const reason = bytes === undefined ? undefined : explainBadBatch(bytes);
    if (reason !== undefined) return reject("quiet", { reason });
    // Nothing in a batch shows that it is complete. If it was moved here, its ctime is later than its mtime.
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

/** Why a small batch is unreadable as a whole; in a large one the faults show line by line. */
function explainBadBatch(bytes: Buffer): string | undefined {
  if (bytes.toString("latin1").trim() === "") return "the batch holds no line";
  return bytes.includes(0)
    ? "the batch holds NUL bytes; if it is UTF-16 or UTF-32, save it as UTF-8"
    : undefined;
}
