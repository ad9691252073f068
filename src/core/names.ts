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
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const PROCESSING =
  /^(.+)@([a-z0-9]+)\.(0|[1-9]\d{0,8})~(?:(ready)|(w|ok|err|bad|again)-([A-Za-z0-9-]+))\.json$/;
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
  | { kind: "task"; id: string }
  /** Not ours: dotfiles, editor leftovers, other endings. Left where it is. */
  | { kind: "ignored" }
  /** Meant for us but with a name no task can have. */
  | { kind: "bad"; reason: string };

/** What a name in `inbox/` says. */
export function readInboxName(name: string): InboxName {
  if (EDITOR_LEFTOVER.test(name)) return { kind: "ignored" };
  if (!name.endsWith(".json")) {
    return name.includes("\ufffd")
      ? { kind: "bad", reason: "the name is not UTF-8" }
      : { kind: "ignored" };
  }
  const id = name.slice(0, -5);
  const reason = id.includes("\ufffd") ? "the name is not UTF-8" : explainBadId(id);
  return reason === undefined ? { kind: "task", id } : { kind: "bad", reason };
}

export function formatName(name: ProcessingName): string {
  const head = `${name.id}@${name.submission}.${name.attempt}~${name.stage}`;
  return name.stage === "ready" ? `${head}.json` : `${head}-${name.token}.json`;
}

/** The parts of a name in `processing/`, or undefined when it is not one of ours. */
export function parseName(file: string): ProcessingName | undefined {
  const match = PROCESSING.exec(file);
  if (match === null) return undefined;
  const [, id, submission, attempt, ready, stage, token] = match;
  if (id === undefined || submission === undefined || attempt === undefined || !isId(id))
    return undefined;
  return {
    id,
    submission,
    attempt: Number(attempt),
    stage: ready === undefined ? (stage as TokenStage) : "ready",
    token: token ?? "",
  };
}

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
  return { id: name.id, submission: name.submission, attempt: name.attempt, stage, token };
}

/** The next attempt of the same submission, free to be claimed. */
export function nextAttempt(name: ProcessingName): ProcessingName {
  return {
    id: name.id,
    submission: name.submission,
    attempt: name.attempt + 1,
    stage: "ready",
    token: "",
  };
}

export function resultName(id: string): string {
  return `${id}_result.json`;
}

export function errorName(id: string): string {
  return `${id}_error.json`;
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
  return runOfLease(name.id, leaseOf(name));
}

/** The same, from the lease that a record names. */
export function runOfLease(id: string, lease: string): string {
  const [, head = lease, token = ""] = /^([^.]*\.[^.]*)\.(.*)$/s.exec(lease) ?? [];
  return `${id}@${head}.${token.slice(token.lastIndexOf("-") + 1)}`;
}
