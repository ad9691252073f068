/**
 * What a file's name means. Pure; the grammar of the protocol lives here and nowhere else.
 *
 *   inbox/<id>.json                             waiting to be accepted
 *   processing/<id>@<s>.<n>~ready.json          accepted; a worker may claim it
 *   processing/<id>@<s>.<n>~w-<owner>.json      claimed: this name is the lease
 *   processing/<id>@<s>.<n>~ok-<x>.json         committed as completed, being published
 *   processing/<id>@<s>.<n>~err-<x>.json        committed as failed, being published
 *   processing/<id>@<s>.<n>~bad-<x>.json        refused, on its way into failed/
 *   processing/<id>@<s>.<n>~again-<x>.json      an error record on its way back into the inbox (retry)
 *   processing/<id>.json                        the plain claim of a foreign worker
 *
 * A batch (many small tasks, one a line) has the same names with the ending `.ndjson`. Beside its records lie
 *   .tmp/<id>@<s>.<n>.<owner>_results.ndjson    what its lines came to so far, under one lease: the checkpoint
 *   outbox|failed/<id>_results.ndjson           the same, settled
 *   outbox|failed/<id>~<s>_batch.ndjson         the batch as it was dropped
 */
import { ID_CHARS_MAX } from "./limits.ts";

/** A stage that carries a token: the owner of the lease, or a random string. */
export type TokenStage = "w" | "ok" | "err" | "bad" | "again";

export interface ProcessingName {
  id: string;
  /** Random nonce of this accepted submission. */
  submission: string;
  /** Counted from 1; 0 for a file that was never accepted. */
  attempt: number;
  stage: "ready" | TokenStage;
  /** Owner or random token; "" for ready. */
  token: string;
  /** True for a batch; left out for a task. */
  isBatch?: true;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const PROCESSING =
  /^(.+)@([a-z0-9]+)\.(0|[1-9]\d{0,8})~(?:(ready)|(w|ok|err|bad|again)-([A-Za-z0-9-]+))\.(nd)?json$/;
const RESULTS = /^(.+)@([a-z0-9]+)\.(?:0|[1-9]\d{0,8})\.[A-Za-z0-9-]+_results\.ndjson$/;
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;
const EDITOR_LEFTOVER = /^(?:\.|#)|(?:~|\.swp|\.swo|\.tmp|\.part|\.bak)$/i;

/** Why `id` cannot be an id, or undefined if it can. The rule is `^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`, no `..`, no device name. */
export function explainBadId(id: string): string | undefined {
  if (id === "") return "the id is empty";
  if (id.length > ID_CHARS_MAX) return `the id is longer than ${ID_CHARS_MAX} characters`;
  if (!ID.test(id))
    return "an id begins with a letter or digit and holds only letters, digits, '.', '_' and '-'";
  if (id.includes("..")) return "an id must not contain '..'";
  if (WINDOWS_DEVICE.test(id)) return "the id is the name of a Windows device";
  return undefined;
}

export function isId(id: string): boolean {
  return explainBadId(id) === undefined;
}

/** Ids are unique without regard to case: this is the form to compare. */
export function foldId(id: string): string {
  return id.toLowerCase();
}

export type InboxName =
  | { kind: "task"; id: string; isBatch?: true }
  /** Not ours: dotfiles, editor leftovers, other endings. Left where it is. */
  | { kind: "ignored" }
  /** Meant for us but with a name no task can have. */
  | { kind: "bad"; reason: string };

/** What a name in `inbox/` says. */
export function readInboxName(name: string): InboxName {
  if (EDITOR_LEFTOVER.test(name)) return { kind: "ignored" };
  const isBatch = name.endsWith(".ndjson");
  if (!isBatch && !name.endsWith(".json")) {
    return name.includes("\ufffd")
      ? { kind: "bad", reason: "the name is not UTF-8" }
      : { kind: "ignored" };
  }
  const id = name.slice(0, isBatch ? -7 : -5);
  const reason = id.includes("\ufffd") ? "the name is not UTF-8" : explainBadId(id);
  if (reason !== undefined) return { kind: "bad", reason };
  return isBatch ? { kind: "task", id, isBatch } : { kind: "task", id };
}

/** The name in `inbox/` under which this task or batch is dropped. */
export function inboxName(name: Pick<ProcessingName, "id" | "isBatch">): string {
  return `${name.id}${endingOf(name)}`;
}

/** True for an accepted task or batch that a worker may claim. */
export function isReadyFile(file: string): boolean {
  return file.endsWith("~ready.json") || file.endsWith("~ready.ndjson");
}

function endingOf(name: { isBatch?: true }): ".json" | ".ndjson" {
  return name.isBatch === true ? ".ndjson" : ".json";
}

export function formatName(name: ProcessingName): string {
  const head = `${name.id}@${name.submission}.${name.attempt}~${name.stage}`;
  const tail = name.stage === "ready" ? "" : `-${name.token}`;
  return `${head}${tail}${endingOf(name)}`;
}

/** The parts of a name in `processing/`, or undefined when it is not one of ours. */
export function parseName(file: string): ProcessingName | undefined {
  const match = PROCESSING.exec(file);
  if (match === null) return undefined;
  const [, id, submission, attempt, ready, stage, token, batch] = match;
  if (id === undefined || submission === undefined || attempt === undefined || !isId(id))
    return undefined;
  return {
    id,
    submission,
    attempt: Number(attempt),
    stage: ready === undefined ? (stage as TokenStage) : "ready",
    token: token ?? "",
    ...(batch === undefined ? {} : IS_BATCH),
  };
}

const IS_BATCH = { isBatch: true } as const;

/** The id of a foreign worker's plain claim `processing/<id>.json`, or undefined. */
export function parsePlainClaim(file: string): string | undefined {
  if (!file.endsWith(".json") || file.includes("@")) return undefined;
  const id = file.slice(0, -5);
  return isId(id) ? id : undefined;
}

export function withStage(
  name: ProcessingName,
  stage: ProcessingName["stage"],
  token = "",
): ProcessingName {
  return { ...name, stage, token };
}

/** The next attempt of the same submission, free to be claimed. */
export function nextAttempt(name: ProcessingName): ProcessingName {
  return { ...name, attempt: name.attempt + 1, stage: "ready", token: "" };
}

export function resultName(id: string): string {
  return `${id}_result.json`;
}

export function errorName(id: string): string {
  return `${id}_error.json`;
}

/** What the lines of a batch came to, settled. */
export function resultsName(id: string): string {
  return `${id}_results.ndjson`;
}

/** Stands for the id in the names of what settled, when something else has taken those: told apart by the submission. */
export function besideId(name: Pick<ProcessingName, "id" | "submission">): string {
  return `${name.id}~${name.submission}`;
}

/** A settled batch as it was dropped. The submission tells this settlement from one before or after a retry. */
export function settledBatchName(id: string, submission: string): string {
  return `${id}~${submission}_batch.ndjson`;
}

/** The id under which a file was refused that had no claim on it: that of the record `<id>~<x>_error.json`; else undefined. */
export function parseRefusalName(file: string): string | undefined {
  return /^([^~]+)~[a-z0-9]+_error\.json$/.exec(file)?.[1];
}

/** The submission that this lease is of. */
export function submissionOf(lease: string): string {
  return lease.slice(0, Math.max(0, lease.indexOf(".")));
}

/** The id of a settled task or batch that this file in `outbox/` belongs to, or undefined. */
export function parseSettledName(file: string): string | undefined {
  return /^([^~]+)(?:~[a-z0-9]+)?_(?:result\.json|(?:results|batch)\.ndjson)$/.exec(file)?.[1];
}

/** Where under `.tmp/` the results of a batch are gathered by the holder of this lease. */
export function stagedResultsName(name: ProcessingName): string {
  return `${name.id}@${leaseOf(name)}_results.ndjson`;
}

/** What the names of one submission begin with, in `processing/` and `.tmp/`. */
export function prefixOf(name: Pick<ProcessingName, "id" | "submission">): string {
  return `${name.id}@${name.submission}.`;
}

/** The prefix that a file of staged results shares with its batch in `processing/`, or undefined. */
export function parseStagedResults(file: string): string | undefined {
  const match = RESULTS.exec(file);
  return match === null ? undefined : `${match[1]}@${match[2]}.`;
}

/** The string that names a lease in records and in a program's environment: unique for ever. */
export function leaseOf(name: ProcessingName): string {
  return `${name.submission}.${name.attempt}.${name.token}`;
}

/** Submission and attempt of a lease string, or undefined when it is not one of ours. */
export function parseLease(lease: string): { submission: string; attempt: number } | undefined {
  const [, submission, attempt] = /^([a-z0-9]+)\.(\d{1,9})\./.exec(lease) ?? [];
  return submission === undefined ? undefined : { submission, attempt: Number(attempt) };
}

/** What the lease of whoever ran this attempt begins with. */
export function leasesOfAttempt(name: ProcessingName): string {
  return `${name.submission}.${name.attempt}.`;
}

/** The name of the directory under `runs/` that holds what one attempt left behind. */
export function runOf(name: ProcessingName): string {
  return `${name.id}@${name.submission}.${name.attempt}.${counterOf(name.token)}`;
}

/** The attempt that this directory under `runs/` is of, or undefined: `<id>@<submission>.<attempt>.<counter>`. */
export function parseRun(dir: string): ProcessingName | undefined {
  const at = dir.lastIndexOf(".");
  return at <= 0 ? undefined : parseName(`${dir.slice(0, at)}~w-${dir.slice(at + 1)}.json`);
}

/** Where in the directory of a program's run it says which file is its claim: `kv put` looks whether that is still there. */
export const CLAIM_NAME = "claim";

/** The same, from the lease that a record names. */
export function runOfLease(id: string, lease: string): string {
  const [, head = lease, token = ""] = /^([^.]*\.[^.]*)\.(.*)$/s.exec(lease) ?? [];
  return `${id}@${head}.${counterOf(token)}`;
}

/** What tells one claim of a process from its next. */
function counterOf(owner: string): string {
  return owner.slice(owner.lastIndexOf("-") + 1);
}
