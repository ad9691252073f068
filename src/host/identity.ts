/** Identifies a process beyond its pid, which is used again: host, boot, pid namespace, pid and start time. Judges whether it lives. */
import os from "node:os";
import type { Verdict } from "./processes/process-source.ts";
import { processes } from "./processes/processes.ts";

export type { Verdict } from "./processes/process-source.ts";

export interface ProcessIdentity {
  /** 12 hex digits: host, boot and pid namespace. */
  place: string;
  pid: number;
  /** Clock ticks after boot; 0 where the system does not say. */
  startTicks: number;
}

let ownPlace: string | undefined;

/** The host, boot and pid namespace in which this process's pids are valid. @throws the system's error when it cannot be read now */
export function thisPlace(): string {
  ownPlace ??= `${hash4(os.hostname())}${hash4(processes().bootId())}${hash4(processes().pidSpace())}`;
  return ownPlace;
}

let own: ProcessIdentity | undefined;

export function thisProcess(): ProcessIdentity {
  own ??= { place: thisPlace(), pid: process.pid, startTicks: startTicksOf(process.pid) ?? 0 };
  return own;
}

/** A process as documents name it. */
export interface SavedProcess {
  place: string;
  pid: number;
  start_ticks: number;
}

/** This process, for a document. */
export function savedSelf(): SavedProcess {
  const { place, pid, startTicks } = thisProcess();
  return { place, pid, start_ticks: startTicks };
}

export function identityOf(pid: number): ProcessIdentity {
  return { place: thisPlace(), pid, startTicks: startTicksOf(pid) ?? 0 };
}

/** The prefix of every owner string of this process. */
export function ownerPrefix(identity: ProcessIdentity): string {
  return `${identity.place}-${identity.pid.toString(36)}-${identity.startTicks.toString(36)}`;
}

/** Makes owner strings: one per claim, never the same twice. */
export function ownerSequence(identity: ProcessIdentity = thisProcess(), mark = ""): () => string {
  const prefix = ownerPrefix(identity);
  let counter = 0;
  return () => {
    counter += 1;
    return `${prefix}-${mark}${counter.toString(36)}`;
  };
}

const CANCELLING = "C";

/** Makes owner strings of claims that cancel a task and do not run it. */
export function cancellingSequence(): () => string {
  return ownerSequence(thisProcess(), CANCELLING);
}

/** Whether this claim was made to cancel its task: no run began under it. */
export function isCancelling(owner: string): boolean {
  return owner.startsWith(CANCELLING, owner.lastIndexOf("-") + 1);
}

const EDITING = "E";

/** Makes owner strings of claims that change a waiting task and do not run it. */
export function editingSequence(): () => string {
  return ownerSequence(thisProcess(), EDITING);
}

/** Whether this claim was made to change its task. Such a task goes back to the inbox. */
export function isEditing(owner: string): boolean {
  return owner.startsWith(EDITING, owner.lastIndexOf("-") + 1);
}

const SKIPPING = "K";

/** Makes owner strings of claims that skip a task and do not run it. */
export function skippingSequence(): () => string {
  return ownerSequence(thisProcess(), SKIPPING);
}

/** Whether this claim was made to skip its task: see `mailbox/retry/skip.ts`. */
export function isSkipping(owner: string): boolean {
  return owner.startsWith(SKIPPING, owner.lastIndexOf("-") + 1);
}

const RUNNER = "R";
const BESIDE = "S";

/** This many random characters keep the counters of two processes apart. */
const MARK_CHARS = 5;

/**
 * Makes owner strings of a worker's claims. Such a worker promises to leave a trace before a run begins: a program's run directory,
 * the journal line of a function, the staged results of a batch. The directory's name holds only the counter of the owner. The random
 * mark in the counter keeps another process from using the directory of an earlier run as its own.
 * @param isBeside other attempts run in the same process
 */
export function runnerSequence(
  identity: ProcessIdentity = thisProcess(),
): (isBeside: boolean) => string {
  const mark = Math.floor(Math.random() * 36 ** MARK_CHARS).toString(36);
  const next = ownerSequence(identity, mark.padStart(MARK_CHARS, "0"));
  return (isBeside) => {
    const owner = next();
    const at = owner.lastIndexOf("-") + 1;
    return `${owner.slice(0, at)}${isBeside ? BESIDE : RUNNER}${owner.slice(at)}`;
  };
}

/** Whether a worker that keeps the promise of `runnerSequence` made this claim. */
export function isRunner(owner: string): boolean {
  const at = owner.lastIndexOf("-") + 1;
  return owner.startsWith(RUNNER, at) || owner.startsWith(BESIDE, at);
}

/** Whether other attempts ran in its process when this claim was made. */
export function wasBeside(owner: string): boolean {
  return owner.startsWith(BESIDE, owner.lastIndexOf("-") + 1);
}

/** The part that all owner strings of one process share: all but the counter. A string without a counter is returned as it is. */
export function processOf(owner: string): string {
  return /^[^-]+-[^-]+-[^-]+(?=-[^-]+$)/.exec(owner)?.[0] ?? owner;
}

/** The id of a worker process. @param owner one of its owner strings, or their prefix */
export function workerIdOf(owner: string): string {
  const [, pid = "", start = ""] = owner.split("-");
  return `w-${pid}-${start}`;
}

/** The process that an owner string names; undefined when the string is not one of ours. */
export function parseOwner(owner: string): ProcessIdentity | undefined {
  const match = /^([0-9a-f]{12})-([0-9a-z]+)-([0-9a-z]+)(?:-[0-9A-Za-z]+)?$/.exec(owner);
  const [, place, pid, start] = match ?? [];
  if (place === undefined || pid === undefined || start === undefined) return undefined;
  return { place, pid: Number.parseInt(pid, 36), startTicks: Number.parseInt(start, 36) };
}

/** The host name of the owner's machine. Of another machine an owner string holds only four hex digits; they are returned instead. */
export function hostOf(owner: string): string {
  const host = parseOwner(owner)?.place.slice(0, 4);
  if (host === undefined) return "";
  return host === thisPlace().slice(0, 4) ? os.hostname() : host;
}

/** Whether the process of this owner string ran on this machine since it started, and in our pid namespace. */
export function isOfThisBoot(owner: string): boolean {
  return parseOwner(owner)?.place === thisPlace();
}

/** Whether the process of this owner string ended with its machine: it ran on this one, before that was started anew. */
export function isOfEarlierBoot(owner: string): boolean {
  const { place } = parseOwner(owner) ?? {};
  const here = thisPlace();
  return (
    place !== undefined &&
    place.slice(0, 4) === here.slice(0, 4) &&
    place.slice(4, 8) !== here.slice(4, 8)
  );
}

/**
 * Whether exactly that process still runs. `unknown`: its pid belongs to another host or container, or the system has no descriptor
 * left to look. Rule: `docs/protocol.md`, "Which process is dead".
 */
export function judge(identity: ProcessIdentity): Verdict {
  const place = thisPlace();
  if (identity.place.slice(0, 4) !== place.slice(0, 4)) return "unknown";
  if (identity.place.slice(4, 8) !== place.slice(4, 8)) return "dead";
  if (identity.place.slice(8) !== place.slice(8)) return "unknown";
  return processes().judge(identity.pid, identity.startTicks);
}

/** The same for the process that a document names. */
export function judgeSaved({ place, pid, start_ticks: startTicks }: SavedProcess): Verdict {
  return judge({ place, pid, startTicks });
}

export function judgeOwner(owner: string): Verdict {
  const identity = parseOwner(owner);
  return identity === undefined ? "unknown" : judge(identity);
}

/** The start time of a live process (zombies are dead), or undefined. @throws the system's error when it cannot be read now */
export function startTicksOf(pid: number): number | undefined {
  return processes().startOf(pid);
}

/** Whether no process has this pid; false when this cannot be known now. */
export function isGone(pid: number): boolean {
  try {
    return startTicksOf(pid) === undefined;
  } catch {
    return false;
  }
}

function hash4(text: string): string {
  // Loaded here, because it takes 5 ms and most commands do not need it.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return createHash("sha256").update(text).digest("hex").slice(0, 4);
}
