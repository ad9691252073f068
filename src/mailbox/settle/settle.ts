/**
 * Settle: end an attempt for good. The order is the protocol's; each step says what a crash after it leaves.
 *
 *   stage    .tmp/<marker>             a whole record, not read yet         → recovery runs the task again
 *   commit   ~w-… → ~ok-… or ~err-…    the fence: only the lease holder can → recovery rolls forward from here on
 *   publish  link to the final name    the result is visible               → recovery sees the same inode: done
 *   record   journal lines             telemetry                           → recovery looks whether they are there
 *   follow   submit callbacks          see follow.ts                       → recovery submits them again, which changes nothing
 *   clean    unlink marker, staged     nothing left to do
 *
 * The results and the file of a batch are published before its record, beside it. See batch-settle.ts.
 */

import { relative } from "node:path";
import { systemCode } from "../../core/errors.ts";
import {
  besideId,
  errorName,
  formatName,
  type ProcessingName,
  parseName,
  resultName,
  withStage,
} from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import type { Claim } from "../claim/claim.ts";
import { createAnew, moved, unlinkIfThere } from "../files/steps.ts";
import type { Follow } from "../files/trays.ts";
import { makeTrays, pathIn, type Trays } from "../files/trays.ts";
import {
  dropOwnResults,
  dropStagedResults,
  hasResults,
  keepBatch,
  keepRest,
  publishResults,
  resultsOf,
} from "./batch-settle.ts";

export type Phase = "new" | "staged" | "committed" | "published" | "recorded" | "done";

export interface Settlement {
  /** The lease that is given up: ours, or a dead owner's that we take over. */
  claim: Claim;
  status: "completed" | "failed";
  record: Buffer;
  /** File name of the marker and of the staged record; its `token` names the settler. */
  marker: string;
  phase: Phase;
  /** The settled task, for the port `Follow`. Undefined for a batch, and for a file that holds no task. */
  task?: Task | undefined;
  /** Final path of the claimed file, relative to the mailbox, when it holds no task that could be put into the record. */
  keptAs?: string;
  /**
   * `fenced`: the lease was lost, nothing changed. `conflict`: another file is at the final name and stays; the record is published
   * as `recordAs`.
   */
  outcome?: "settled" | "fenced" | "conflict";
  /** Path of the record, relative to the mailbox, when it is not at its final name. */
  recordAs?: string;
  /** When it was committed, on the settler's own clock (ms); undefined when another process committed it. */
  committedMs?: number;
  /** Another process may have finished it and written the journal lines: look for the lines before writing them. */
  mayBeRecorded?: boolean;
  /** The error that stopped this settlement; calling settleAll again continues from `phase`. */
  error?: unknown;
}

/** No other process takes over a settlement sooner than this after its commit (ms), so we need not check before. */
const TAKEOVER_MS_MIN = 50;

/**
 * @param settler owner string of the process that settles: recovery learns from it whether to wait for that process
 * @param task see `Settlement.task`
 */
export function newSettlement(
  claim: Claim,
  status: Settlement["status"],
  record: Buffer,
  settler: string,
  task?: Task,
): Settlement {
  const marker = formatName(withStage(claim.name, status === "completed" ? "ok" : "err", settler));
  return { claim, status, record, marker, phase: "new", task };
}

/**
 * Takes each settlement as far as possible. Never throws: a failure is kept in `error`, and a later call continues. With durability
 * `process` all of it happens before this returns, unless callbacks follow or `onPublished` returns a promise.
 * @param onPublished writes the journal lines of settlements that are now visible; called at most once for each. If it throws, a
 *   later settleAll calls it again for them. Their markers stay until its promise has resolved
 */
export async function settleAll(
  trays: Trays,
  settlements: readonly Settlement[],
  onPublished: OnPublished,
): Promise<void> {
  const isDurable = trays.durability === "power";
  for (const s of settlements) delete s.error;

  const staging = settlements.filter((s) => s.phase === "new");
  for (const s of staging) attempt(s, () => stage(trays, s));
  if (isDurable && staging.length > 0) {
    const written = staging.filter((s) => s.error === undefined);
    await barrier(written, () =>
      trays.storage.syncFiles(written.flatMap((s) => filesOf(trays, s))),
    );
  }
  for (const s of staging) if (s.error === undefined) s.phase = "staged";

  const nowMs = trays.clock.monotonicMs();
  for (const s of settlements) if (s.phase === "staged") attempt(s, () => commit(trays, s, nowMs));
  const publishing = settlements.filter((s) => s.phase === "committed");
  const { follow } = trays;
  if (isDurable && follow !== undefined) {
    // If a power cut kept the record and lost the marker, the callbacks would never be submitted.
    const followed = publishing.filter((s) => follow(s) !== undefined);
    if (followed.length > 0)
      await barrier(followed, () => trays.storage.syncDirs([trays.processing]));
  }
  for (const s of publishing) if (s.error === undefined) attempt(s, () => publish(trays, s));
  const visible = publishing.filter(
    (s) => s.error === undefined && (s.outcome === "settled" || s.outcome === "conflict"),
  );
  if (isDurable && visible.length > 0) {
    await barrier(visible, () => trays.storage.syncDirs(visible.map((s) => finalDir(trays, s))));
  }
  for (const s of publishing)
    if (s.error === undefined && s.phase === "committed") s.phase = "published";

  const published = settlements.filter((s) => s.phase === "published");
  const recorded = record(trays, published, onPublished);
  if (recorded !== undefined) await recorded;
  const following = follow === undefined ? [] : whatFollows(settlements, follow);
  if (following.length > 0) await Promise.all(following);
  for (const s of settlements)
    if (s.phase === "recorded" && s.error === undefined) attempt(s, () => clean(trays, s));

  const anew = publishing.filter((s) => s.error === undefined && s.phase === "new");
  if (anew.length > 0) await settleAll(trays, anew, onPublished);
}

/** Starts the follow-up of each visible settlement. @returns promises that never reject */
function whatFollows(settlements: readonly Settlement[], follow: Follow): Promise<void>[] {
  return settlements.flatMap((s) => {
    const begin = s.phase === "recorded" ? follow(s) : undefined;
    if (begin === undefined) return [];
    return begin().catch((error: unknown) => {
      s.error = error;
    });
  });
}

/** The files that must be durable before the commit: the record, and the results of a batch. */
function filesOf(trays: Trays, s: Settlement): string[] {
  const record = stagedPath(trays, s);
  return s.claim.name.isBatch === true && hasResults(trays, s)
    ? [record, resultsOf(trays, s)]
    : [record];
}

function stage(trays: Trays, s: Settlement): void {
  createAnew(trays, stagedPath(trays, s), s.record);
}

function commit(trays: Trays, s: Settlement, nowMs: number): void {
  const marker = pathIn(trays.processing, s.marker);
  if (moved(trays, s.claim.path, marker) || trays.storage.look(marker) !== undefined) {
    s.phase = "committed";
    s.committedMs = nowMs;
    return;
  }
  s.outcome = "fenced";
  s.phase = "done";
  unlinkIfThere(trays, stagedPath(trays, s));
  if (s.claim.name.isBatch === true) dropOwnResults(trays, parseName(s.marker) as ProcessingName);
}

function publish(trays: Trays, s: Settlement): void {
  // The record was published, but not yet durable. If a consumer has removed the record since, it is not published again.
  if (s.outcome === "settled" || s.outcome === "conflict") return;
  const staged = stagedPath(trays, s);
  const final = finalPath(trays, s);
  // The record is published last: whenever it is there, the results and the batch are there too, even after a power cut.
  if (s.claim.name.isBatch === true) {
    publishResults(trays, s, finalDir(trays, s));
    keepBatch(trays, s, finalDir(trays, s));
  }
  for (let tries = 0; ; tries++) {
    try {
      trays.storage.link(staged, final);
      s.outcome = "settled";
      return;
    } catch (error) {
      const code = systemCode(error);
      if (code === "EEXIST") {
        const isOurs =
          trays.storage.look(staged)?.ino === trays.storage.look(final)?.ino ||
          holdsRecord(trays, s, final);
        if (isOurs) s.outcome = "settled";
        else publishBeside(trays, s);
        s.mayBeRecorded = isOurs;
        return;
      }
      if (code !== "ENOENT" || tries > 0) throw error;
      if (wasFinished(trays, s)) return;
      // The staged record was swept, or the tray was deleted: we still have the bytes.
      if (trays.storage.look(staged) === undefined && beganAnew(trays, s)) return;
      makeTrays(trays);
      if (trays.storage.look(staged) === undefined) trays.storage.create(staged, s.record);
    }
  }
}

/**
 * Another file, directory or link is at the final name. The name beside it is always the same, so after a crash the record is found
 * there and the step is done.
 */
function publishBeside(trays: Trays, s: Settlement): void {
  try {
    trays.storage.link(stagedPath(trays, s), besidePath(trays, s));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
  noteBeside(trays, s);
}

/** Notes that the record is published, under the name beside the final one. */
export function noteBeside(trays: Trays, s: Settlement): void {
  s.outcome = "conflict";
  s.recordAs = relative(trays.dir, besidePath(trays, s));
}

/**
 * Stages and commits again under another name. A process that believed us dead may have seen a marker without a record; it then
 * runs the task again, and our new commit fails. A batch cannot do this: its results are found by the name of the marker.
 */
function beganAnew(trays: Trays, s: Settlement): boolean {
  const path = pathIn(trays.processing, s.marker);
  const name = parseName(s.marker);
  // A missing tray proves nothing. If the marker is gone by now, the new commit fails.
  const hasTray = trays.storage.look(trays.processing) !== undefined;
  if (name === undefined || name.isBatch === true || !hasTray) return false;
  s.claim = { ...s.claim, path };
  s.marker = formatName({ ...name, token: `${name.token}r` });
  s.phase = "new";
  return true;
}

/**
 * Whether a process that believed us dead has finished the settlement. `fenced` when our record is not there: the task runs again
 * or a consumer took the record, and publishing again would settle it twice.
 */
function wasFinished(trays: Trays, s: Settlement): boolean {
  if (hasMarker(trays, s)) return false;
  s.mayBeRecorded = true;
  if (holdsRecord(trays, s, finalPath(trays, s))) s.outcome = "settled";
  else if (holdsRecord(trays, s, besidePath(trays, s))) noteBeside(trays, s);
  else s.outcome = "fenced";
  return true;
}

function holdsRecord(trays: Trays, s: Settlement, path: string): boolean {
  if (trays.storage.look(path) === undefined) return false;
  return trays.storage.read(path, s.record.length).bytes?.equals(s.record) === true;
}

/** Whether the marker is there. A missing tray proves nothing and counts as yes. */
function hasMarker(trays: Trays, s: Settlement): boolean {
  if (trays.storage.look(pathIn(trays.processing, s.marker)) !== undefined) return true;
  return trays.storage.look(trays.processing) === undefined;
}

type OnPublished = (published: readonly Settlement[]) => void | Promise<void>;

/** @returns a promise only when `onPublished` has returned one */
function record(
  trays: Trays,
  published: readonly Settlement[],
  onPublished: OnPublished,
): Promise<void> | undefined {
  if (published.length === 0) return undefined;
  const sinceMs = trays.clock.monotonicMs() - TAKEOVER_MS_MIN;
  for (const s of published) attempt(s, () => noteTakenOver(trays, s, sinceMs));
  const recording = published.filter((s) => s.error === undefined);
  const onRecorded = (): void => {
    for (const s of recording) s.phase = "recorded";
  };
  const onError = (error: unknown): void => {
    // Some of the lines may have been written.
    for (const s of recording) Object.assign(s, { error, mayBeRecorded: true });
  };
  try {
    const waiting = onPublished(recording.filter((s) => s.outcome === "settled"));
    if (waiting !== undefined) return waiting.then(onRecorded, onError);
    onRecorded();
  } catch (error) {
    onError(error);
  }
  return undefined;
}

/** If this process was stopped after the commit, recovery may have continued in its place: the marker is then gone. */
function noteTakenOver(trays: Trays, s: Settlement, sinceMs: number): void {
  const { committedMs = Number.NEGATIVE_INFINITY } = s;
  if (committedMs < sinceMs && !hasMarker(trays, s)) s.mayBeRecorded = true;
}

function clean(trays: Trays, s: Settlement): void {
  if (s.claim.name.isBatch === true) {
    keepRest(trays, s, finalDir(trays, s));
    dropStagedResults(trays, s);
  }
  const marker = pathIn(trays.processing, s.marker);
  if (s.keptAs === undefined) unlinkIfThere(trays, marker);
  else moved(trays, marker, pathIn(trays.dir, s.keptAs));
  unlinkIfThere(trays, stagedPath(trays, s));
  s.phase = "done";
}

export function stagedPath(trays: Trays, s: Settlement): string {
  return pathIn(trays.tmp, s.marker);
}

function finalDir(trays: Trays, s: Settlement): string {
  return s.status === "completed" ? trays.outbox : trays.failed;
}

export function finalPath(trays: Trays, s: Settlement): string {
  return recordPath(trays, s, s.claim.name.id);
}

/** Path of the record when another file is at its final name. */
export function besidePath(trays: Trays, s: Settlement): string {
  return recordPath(trays, s, besideId(s.claim.name));
}

function recordPath(trays: Trays, s: Settlement, id: string): string {
  return pathIn(finalDir(trays, s), s.status === "completed" ? resultName(id) : errorName(id));
}

function attempt(s: Settlement, step: () => void): void {
  try {
    step();
  } catch (error) {
    s.error = error;
  }
}

async function barrier(group: readonly Settlement[], sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    for (const s of group) s.error = error;
  }
}
