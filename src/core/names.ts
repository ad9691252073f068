/**
 * Reads and writes the file names of the protocol. Pure. No other file knows their form.
 *
 *   inbox/<id>.json                             waiting to be accepted
 *   processing/<id>@<s>.<n>~ready.json          accepted; a worker may claim it
 *   processing/<id>@<s>.<n>~w-<owner>.json      claimed: this name is the lease
 *   processing/<id>@<s>.<n>~hold-<gate>.json    waits for a gate, such as an account's quota; a supervisor releases it
 *   processing/<id>@<s>.<n>~ok-<x>.json         committed as completed, being published
 *   processing/<id>@<s>.<n>~err-<x>.json        committed as failed, being published
 *   processing/<id>@<s>.<n>~bad-<x>.json        refused, being moved into failed/
 *   processing/<id>@<s>.<n>~again-<x>.json      an error record that is being moved back into the inbox (retry)
 *   processing/<id>.json                        claimed by a worker that is not mailchute's, by a plain rename
 *
 * `<s>` is random and ends in the day on which it was made, `<8 characters><yymmdd>` in UTC. The files of a submission's runs
 * are in the folder of that day. So the name alone says where they are, and no folder grows without end.
 *   runs/<yyyy-mm-dd>/<id>@<s>.<n>.<counter>/   the files of one attempt
 *   runs/<id>@<s>.<n>.<counter>/                the same when `<s>` holds no day: from earlier versions and other programs
 *
 * A batch (many small tasks, one on each line) has the same names with the ending `.ndjson`, and these files besides:
 *   .tmp/<id>@<s>.<n>.<owner>_results.ndjson    the results of its lines so far, under one lease: the checkpoint
 *   outbox|failed/<id>_results.ndjson           the results after the batch has settled
 *   outbox|failed/<id>~<s>_batch.ndjson         the batch as it was dropped
 */
import { ID_CHARS_MAX } from "./limits.ts";

/** A stage with a token in its name: the owner of the lease, the gate, or a random string. */
export type TokenStage = "w" | "hold" | "ok" | "err" | "bad" | "again";

export interface ProcessingName {
  id: string;
  /** Random nonce of this accepted submission; see `nonceOf`. */
  submission: string;
  /** Number of the attempt, from 1; 0 for a file that was never accepted. */
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

/** An id in lower case, for comparing: two ids that differ only in case are the same id. */
export function foldId(id: string): string {
  return id.toLowerCase();
}

export type InboxName =
  | { kind: "task"; id: string; isBatch?: true }
  /** No task: a dotfile, an editor's leftover, another ending. The file stays where it is. */
  | { kind: "ignored" }
  /** The file was meant as a task, but no task can have this name. */
  | { kind: "bad"; reason: string };

/** Reads the name of a file in `inbox/`. */
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

/** An ending that people write for a task or a batch. */
const ALMOST_TASK = /\.(?:nd)?json$|\.(?:jsonl|json5|jsonc|ya?ml)$/i;

/** True for a file in `inbox/` that is surely meant as a task, and that its ending keeps from being one. */
export function isMisnamed(name: string): boolean {
  const isLeftover = EDITOR_LEFTOVER.test(name);
  return !isLeftover && ALMOST_TASK.test(name) && readInboxName(name).kind === "ignored";
}

/** The name in `inbox/` under which this task or batch is dropped. */
export function inboxName(name: Pick<ProcessingName, "id" | "isBatch">): string {
  return `${name.id}${endingOf(name)}`;
}

/** True for an accepted task or batch that a worker may claim. */
export function isReadyFile(file: string): boolean {
  return file.endsWith("~ready.json") || file.endsWith("~ready.ndjson");
}

/** True for an accepted task or batch that no process has claimed: it is ready, or waits at a gate. */
export function isUnclaimed(name: Pick<ProcessingName, "stage"> | undefined): boolean {
  return name?.stage === "ready" || name?.stage === "hold";
}

/** The prefix of the gate of a task that runs on another machine. Such a task is in work, although no local process has it. */
export const CLUSTER_GATE = "cluster-";

/** True if this file in `processing/` takes up slots of its group, its agent and its limits. */
export function takesPlaces({ stage, token }: Pick<ProcessingName, "stage" | "token">): boolean {
  if (stage === "hold") return token.startsWith(CLUSTER_GATE);
  return stage !== "bad" && stage !== "again";
}

function endingOf(name: { isBatch?: true }): ".json" | ".ndjson" {
  return name.isBatch === true ? ".ndjson" : ".json";
}

export function formatName(name: ProcessingName): string {
  const head = `${name.id}@${name.submission}.${name.attempt}~${name.stage}`;
  const tail = name.stage === "ready" ? "" : `-${name.token}`;
  return `${head}${tail}${endingOf(name)}`;
}

/** The parts of a name in `processing/`, or undefined when the name has another form. */
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

/** The id in `processing/<id>.json`, a task that another program's worker has claimed; undefined for another name. */
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

/** The name of the same submission's next attempt, ready to be claimed. */
export function nextAttempt(name: ProcessingName): ProcessingName {
  return { ...name, attempt: name.attempt + 1, stage: "ready", token: "" };
}

export function resultName(id: string): string {
  return `${id}_result.json`;
}

export function errorName(id: string): string {
  return `${id}_error.json`;
}

/** The id of an error record; undefined for another name, and for a record with a longer name. */
export function parseErrorName(file: string): string | undefined {
  return /^([^~]+)_error\.json$/.exec(file)?.[1];
}

/** The name of the results of a settled batch. */
export function resultsName(id: string): string {
  return `${id}_results.ndjson`;
}

/** Used instead of the id in the names of records when another file has the usual name. The submission makes it unique. */
export function besideId(name: Pick<ProcessingName, "id" | "submission">): string {
  return `${name.id}~${name.submission}`;
}

/** The name of a settled batch as it was dropped. Each retry has another submission, so the names differ. */
export function settledBatchName(id: string, submission: string): string {
  return `${id}~${submission}_batch.ndjson`;
}

/** The id of a record whose name was made with `besideId`, `<id>~<x>_result.json` or `<id>~<x>_error.json`; else undefined. */
export function parseBesideName(file: string): string | undefined {
  return /^([^~]+)~[a-z0-9]+_(?:result|error)\.json$/.exec(file)?.[1];
}

/** The submission of a lease. */
export function submissionOf(lease: string): string {
  return lease.slice(0, Math.max(0, lease.indexOf(".")));
}

/** The id of a settled task or batch that this file in `outbox/` belongs to, or undefined. */
export function parseSettledName(file: string): string | undefined {
  return /^([^~]+)(?:~[a-z0-9]+)?_(?:result\.json|(?:results|batch)\.ndjson)$/.exec(file)?.[1];
}

/** The file under `.tmp/` in which the holder of this lease gathers the results of a batch. */
export function stagedResultsName(name: ProcessingName): string {
  return `${name.id}@${leaseOf(name)}_results.ndjson`;
}

/** The text that all names of one submission in `processing/` and `.tmp/` begin with. */
export function prefixOf(name: Pick<ProcessingName, "id" | "submission">): string {
  return `${name.id}@${name.submission}.`;
}

/** The prefix that a file of staged results shares with its batch in `processing/`, or undefined. */
export function parseStagedResults(file: string): string | undefined {
  const match = RESULTS.exec(file);
  return match === null ? undefined : `${match[1]}@${match[2]}.`;
}

/** The string for a lease in records and in a program's environment. No two leases ever have the same. */
export function leaseOf(name: ProcessingName): string {
  return `${name.submission}.${name.attempt}.${name.token}`;
}

/** Submission and attempt of a lease string, or undefined when the string has another form. */
export function parseLease(lease: string): { submission: string; attempt: number } | undefined {
  const [, submission, attempt] = /^([a-z0-9]+)\.(\d{1,9})\./.exec(lease) ?? [];
  return submission === undefined ? undefined : { submission, attempt: Number(attempt) };
}

/** The text that the leases of all claims of this attempt begin with. */
export function leasesOfAttempt(name: ProcessingName): string {
  return `${headOf(name)}.`;
}

/** The part of a lease that is known before it has an owner: `<s>.<n>`. */
export function headOf(name: ProcessingName): string {
  return `${name.submission}.${name.attempt}`;
}

/** Splits a lease for journals: the part that is known before it has an owner, and the owner ("" without an owner). */
export function splitLease(lease: string): { head: string; owner: string } {
  const at = lease.indexOf(".", lease.indexOf(".") + 1);
  return at <= 0
    ? { head: lease, owner: "" }
    : { head: lease.slice(0, at), owner: lease.slice(at + 1) };
}

/** The lease that a journal line is about. Lines of earlier versions have no `owner`; their `lease` holds the whole lease. */
export function leaseOfLine({ lease, owner }: { lease?: unknown; owner?: unknown }): string {
  const head = typeof lease === "string" ? lease : "";
  return typeof owner === "string" && owner !== "" ? `${head}.${owner}` : head;
}

/** How many characters of a nonce are random. */
export const NONCE_RANDOM_CHARS = 8;
const NONCE_DAY = /^[a-z0-9]{8}(\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The nonce of a new submission. @param random `NONCE_RANDOM_CHARS` characters @param wallMs epoch ms */
export function nonceOf(random: string, wallMs: number): string {
  const day = new Date(wallMs).toISOString();
  return `${random}${day.slice(2, 4)}${day.slice(5, 7)}${day.slice(8, 10)}`;
}

/** The folder under `runs/` for the attempts of this submission, with a slash at the end; "" when the submission holds no day. */
export function runsFolderOf(submission: string): string {
  const [, year, month, day] = NONCE_DAY.exec(submission) ?? [];
  return year === undefined ? "" : `20${year}-${month}-${day}/`;
}

/** Whether this is the name of a folder under `runs/` that holds the runs of one day. */
export function isRunsFolder(name: string): boolean {
  return DAY.test(name);
}

/** The directory of one attempt, as a path below `runs/`. */
export function runOf(name: ProcessingName): string {
  const { id, submission, attempt, token } = name;
  return `${runsFolderOf(submission)}${id}@${submission}.${attempt}.${counterOf(token)}`;
}

/** Reads the name of an attempt's directory, `<id>@<submission>.<attempt>.<counter>`; undefined for another name. */
export function parseRun(dir: string): ProcessingName | undefined {
  const at = dir.lastIndexOf(".");
  return at <= 0 ? undefined : parseName(`${dir.slice(0, at)}~w-${dir.slice(at + 1)}.json`);
}

/** Checks a path below `runs/` that a record names. Undefined when no run can have this path. */
export function cleanRun(run: string): string | undefined {
  const at = run.lastIndexOf("/");
  const isGood = (at === -1 || isRunsFolder(run.slice(0, at))) && parseRun(run.slice(at + 1));
  return isGood ? run : undefined;
}

/** A file in the directory of a program's run that names the claimed file. `kv put` checks that the claimed file still exists. */
export const CLAIM_NAME = "claim";

/** The directory of a run, as a path below `runs/`, made from the lease in a record. */
export function runOfLease(id: string, lease: string): string {
  const [, head = lease, token = ""] = /^([^.]*\.[^.]*)\.(.*)$/s.exec(lease) ?? [];
  return `${runsFolderOf(submissionOf(lease))}${id}@${head}.${counterOf(token)}`;
}

/** The last part of an owner, which is different for each claim of a process. */
function counterOf(owner: string): string {
  return owner.slice(owner.lastIndexOf("-") + 1);
}
