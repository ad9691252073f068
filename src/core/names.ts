/**
 * What a file's name means. Pure; the grammar of the protocol lives here and nowhere else.
 *
 *   inbox/<id>.json                             waiting to be accepted
 *   processing/<id>@<s>.<n>~ready.json          accepted; a worker may claim it
 *   processing/<id>@<s>.<n>~w-<owner>.json      claimed: this name is the lease
 *   processing/<id>@<s>.<n>~hold-<gate>.json    waits for a gate, such as an account's quota; a supervisor lets it go
 *   processing/<id>@<s>.<n>~ok-<x>.json         committed as completed, being published
 *   processing/<id>@<s>.<n>~err-<x>.json        committed as failed, being published
 *   processing/<id>@<s>.<n>~bad-<x>.json        refused, on its way into failed/
 *   processing/<id>@<s>.<n>~again-<x>.json      an error record on its way back into the inbox (retry)
 *   processing/<id>.json                        the plain claim of a foreign worker
 *
 * `<s>` is random and ends in the day on which it was made, `<8 characters><yymmdd>` in UTC. What the runs of a submission
 * leave lies in the folder of that day, so it can be found from the name alone, and no folder grows without end.
 *   runs/<yyyy-mm-dd>/<id>@<s>.<n>.<counter>/   what one attempt left behind
 *   runs/<id>@<s>.<n>.<counter>/                the same, where `<s>` tells no day: of earlier versions, and of others
 *
 * A batch (many small tasks, one a line) has the same names with the ending `.ndjson`. Beside its records lie
 *   .tmp/<id>@<s>.<n>.<owner>_results.ndjson    what its lines came to so far, under one lease: the checkpoint
 *   outbox|failed/<id>_results.ndjson           the same, settled
 *   outbox|failed/<id>~<s>_batch.ndjson         the batch as it was dropped
 */
import { ID_CHARS_MAX } from "./limits.ts";

/** A stage that carries a token: the owner of the lease, the gate, or a random string. */
export type TokenStage = "w" | "hold" | "ok" | "err" | "bad" | "again";

export interface ProcessingName {
  id: string;
  /** Random nonce of this accepted submission; see `nonceOf`. */
  submission: string;
  /** Counted from 1; 0 for a file that was never accepted. */
  attempt: number;
  stage: "ready" | TokenStage;
  /** Owner, gate or random token; "" for ready. */
  token: string;
  /** True for a batch; left out for a task. */
  isBatch?: true;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const PROCESSING =
  /^(.+)@([a-z0-9]+)\.(0|[1-9]\d{0,8})~(?:(ready)|(w|hold|ok|err|bad|again)-([A-Za-z0-9-]+))\.(nd)?json$/;
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

/** True for an accepted task or batch that no process has claimed: it is ready, or held at a gate. */
export function isUnclaimed(name: Pick<ProcessingName, "stage"> | undefined): boolean {
  return name?.stage === "ready" || name?.stage === "hold";
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

/** The id of a record that has a name beside the final one, `<id>~<x>_result.json` or `<id>~<x>_error.json`; else undefined. */
export function parseBesideName(file: string): string | undefined {
  return /^([^~]+)~[a-z0-9]+_(?:result|error)\.json$/.exec(file)?.[1];
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

/** What the leases of all claims of this attempt begin with. */
export function leasesOfAttempt(name: ProcessingName): string {
  return `${headOf(name)}.`;
}

/** What is known of a lease before it has an owner: `<s>.<n>`. */
export function headOf(name: ProcessingName): string {
  return `${name.submission}.${name.attempt}`;
}

/** A lease as journals tell it: what is known of it before it has an owner, and the owner, "" where there is none. */
export function splitLease(lease: string): { head: string; owner: string } {
  const at = lease.indexOf(".", lease.indexOf(".") + 1);
  return at <= 0
    ? { head: lease, owner: "" }
    : { head: lease.slice(0, at), owner: lease.slice(at + 1) };
}

/** The lease that a journal line is about. Lines of earlier versions have no `owner`, but all of it in `lease`. */
export function leaseOfLine({ lease, owner }: { lease?: unknown; owner?: unknown }): string {
  const head = typeof lease === "string" ? lease : "";
  return typeof owner === "string" && owner !== "" ? `${head}.${owner}` : head;
}

/** So much of a nonce is chance. */
export const NONCE_RANDOM_CHARS = 8;
const NONCE_DAY = /^[a-z0-9]{8}(\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The nonce of a new submission. @param random `NONCE_RANDOM_CHARS` characters @param wallMs epoch ms */
export function nonceOf(random: string, wallMs: number): string {
  const day = new Date(wallMs).toISOString();
  return `${random}${day.slice(2, 4)}${day.slice(5, 7)}${day.slice(8, 10)}`;
}

/** What lies under `runs/` of the attempts of this submission: the folder of its day, with a slash; "" when it tells no day. */
export function runsFolderOf(submission: string): string {
  const [, year, month, day] = NONCE_DAY.exec(submission) ?? [];
  return year === undefined ? "" : `20${year}-${month}-${day}/`;
}

/** Whether this is the name of a folder under `runs/` that holds the runs of one day. */
export function isRunsFolder(name: string): boolean {
  return DAY.test(name);
}

/** The path below `runs/` of the directory that holds what one attempt left behind. */
export function runOf(name: ProcessingName): string {
  const { id, submission, attempt, token } = name;
  return `${runsFolderOf(submission)}${id}@${submission}.${attempt}.${counterOf(token)}`;
}

/** The attempt that a directory of this name is of, or undefined: `<id>@<submission>.<attempt>.<counter>`. */
export function parseRun(dir: string): ProcessingName | undefined {
  const at = dir.lastIndexOf(".");
  return at <= 0 ? undefined : parseName(`${dir.slice(0, at)}~w-${dir.slice(at + 1)}.json`);
}

/** The path below `runs/` that a record says; undefined when it is none that a run can have. */
export function cleanRun(run: string): string | undefined {
  const at = run.lastIndexOf("/");
  const isGood = (at === -1 || isRunsFolder(run.slice(0, at))) && parseRun(run.slice(at + 1));
  return isGood ? run : undefined;
}

/** Where in the directory of a program's run it says which file is its claim: `kv put` looks whether that is still there. */
export const CLAIM_NAME = "claim";

/** The same, from the lease that a record names. */
export function runOfLease(id: string, lease: string): string {
  const [, head = lease, token = ""] = /^([^.]*\.[^.]*)\.(.*)$/s.exec(lease) ?? [];
  return `${runsFolderOf(submissionOf(lease))}${id}@${head}.${counterOf(token)}`;
}

/** What tells one claim of a process from its next. */
function counterOf(owner: string): string {
  return owner.slice(owner.lastIndexOf("-") + 1);
}
