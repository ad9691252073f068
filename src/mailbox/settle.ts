/**
 * Settle: end an attempt for good. The order is the protocol's; each step says what a crash after it leaves.
 *
 *   stage    .tmp/<marker>             a whole record, not read yet         → recovery runs the task again
 *   commit   ~w-… → ~ok-… or ~err-…    the fence: only the lease holder can → recovery rolls forward from here on
 *   publish  link to the final name    the result is visible               → recovery sees the same inode: done
 *   record   journal lines             telemetry                           → recovery looks whether they are there
 *   clean    unlink marker, staged     nothing left to do
 *
 * A batch has its results and itself beside its record: published before it. See batch-settle.ts.
 */

import { relative } from "node:path";
import { systemCode } from "../core/errors.ts";
import {
  besideId,
  errorName,
  formatName,
  type ProcessingName,
  parseName,
  resultName,
  withStage,
} from "../core/names.ts";
import {
  dropOwnResults,
  dropStagedResults,
  hasResults,
  keepBatch,
  keepRest,
  publishResults,
  resultsOf,
} from "./batch-settle.ts";
import type { Claim } from "./claim.ts";
import { createAnew, moved, unlinkIfThere } from "./steps.ts";
import { makeTrays, pathIn, type Trays } from "./trays.ts";

export type Phase = "new" | "staged" | "committed" | "published" | "recorded" | "done";

export interface Settlement {
  /** The lease that is given up: ours, or a dead owner's that we take over. */
  claim: Claim;
  status: "completed" | "failed";
  record: Buffer;
  /** File name of the marker and of the staged record; `token` in it says who settles. */
  marker: string;
  phase: Phase;
  /** Where the claimed file itself goes in the end, relative to the mailbox, when it holds no task that the record could. */
  keptAs?: string;
  /**
   * `fenced`: the lease was lost, nothing changed. `conflict`: something else stands at the final name and stays; the record is
   * published as `recordAs`.
   */
  outcome?: "settled" | "fenced" | "conflict";
  /** Where the record is, relative to the mailbox, when it is not at its final name. */
  recordAs?: string;
  /** When it was committed, on the settler's own clock (ms); undefined: by another process. */
  committedMs?: number;
  /** Another process may have brought it to its end, journal lines and all: before lines are written they are looked for. */
  mayBeRecorded?: boolean;
  /** What stopped this settlement; calling settleAll again goes on from `phase`. */
  error?: unknown;
}

/** No process takes a settlement over sooner after its commit (ms): until then it is not looked for. */
const TAKEOVER_MS_MIN = 50;

/** @param settler owner string of the process that settles: tells recovery whether to wait for them */
export function newSettlement(
  claim: Claim,
  status: Settlement["status"],
  record: Buffer,
  settler: string,
): Settlement {
  const marker = formatName(withStage(claim.name, status === "completed" ? "ok" : "err", settler));
  return { claim, status, record, marker, phase: "new" };
}

/**
 * Takes each settlement as far as it goes. Never throws: what could not be done is in `error`, and a later call goes on.
 * With durability `process` all of it happens before this returns.
 * @param onPublished writes the journal lines of settlements that are now visible; called at most once for each. Should it throw,
 *   it is called again for them by a later call
 */
export async function settleAll(
  trays: Trays,
  settlements: readonly Settlement[],
  onPublished: (published: readonly Settlement[]) => void,
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
  for (const s of publishing) attempt(s, () => publish(trays, s));
  const visible = publishing.filter(
    (s) => s.error === undefined && (s.outcome === "settled" || s.outcome === "conflict"),
  );
  if (isDurable && visible.length > 0) {
    await barrier(visible, () => trays.storage.syncDirs(visible.map((s) => finalDir(trays, s))));
  }
  for (const s of publishing)
    if (s.error === undefined && s.phase === "committed") s.phase = "published";

  const published = settlements.filter((s) => s.phase === "published");
  record(trays, published, onPublished);
  for (const s of settlements) if (s.phase === "recorded") attempt(s, () => clean(trays, s));

  const anew = publishing.filter((s) => s.error === undefined && s.phase === "new");
  if (anew.length > 0) await settleAll(trays, anew, onPublished);
}

/** What must be durable before the commit: the record, and the results of a batch. */
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
  // The record was published, but not made durable: a consumer that took it away since then gets no second one.
  if (s.outcome === "settled" || s.outcome === "conflict") return;
  const staged = stagedPath(trays, s);
  const final = finalPath(trays, s);
  // The record comes last: where it stands, the results and the batch stand too, also after a power cut.
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
      // The staged record was swept, or the tray was deleted: we still hold the bytes.
      if (trays.storage.look(staged) === undefined && beganAnew(trays, s)) return;
      makeTrays(trays);
      if (trays.storage.look(staged) === undefined) trays.storage.create(staged, s.record);
    }
  }
}

/**
 * Another file, directory or link stands at the final name. The name beside it is the same for a process that comes here again
 * after a crash: then it is there, and done.
 */
function publishBeside(trays: Trays, s: Settlement): void {
  try {
    trays.storage.link(stagedPath(trays, s), besidePath(trays, s));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
  noteBeside(trays, s);
}

/** The record is published, under the name beside the final one. */
export function noteBeside(trays: Trays, s: Settlement): void {
  s.outcome = "conflict";
  s.recordAs = relative(trays.dir, besidePath(trays, s));
}

/**
 * Stages and commits under a name of its own: a process that took us for dead and saw a marker without a record has the task run again,
 * and then this commit is lost. Results of a batch are found by the name of the marker, which stays.
 */
function beganAnew(trays: Trays, s: Settlement): boolean {
  const path = pathIn(trays.processing, s.marker);
  const name = parseName(s.marker);
  // A missing tray is no evidence. A marker that is gone by now makes the new commit fail.
  const hasTray = trays.storage.look(trays.processing) !== undefined;
  if (name === undefined || name.isBatch === true || !hasTray) return false;
  s.claim = { ...s.claim, path };
  s.marker = formatName({ ...name, token: `${name.token}r` });
  s.phase = "new";
  return true;
}

/**
 * Whether a process that took us for dead has ended it. `fenced` when our record is not there: then the task runs again,
 * or a consumer has taken it, and to publish it once more would be a second settlement.
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

/** A missing tray is no evidence. */
function hasMarker(trays: Trays, s: Settlement): boolean {
  if (trays.storage.look(pathIn(trays.processing, s.marker)) !== undefined) return true;
  return trays.storage.look(trays.processing) === undefined;
}

function record(
  trays: Trays,
  published: readonly Settlement[],
  onPublished: (published: readonly Settlement[]) => void,
): void {
  if (published.length === 0) return;
  const sinceMs = trays.clock.monotonicMs() - TAKEOVER_MS_MIN;
  for (const s of published) attempt(s, () => noteTakenOver(trays, s, sinceMs));
  const recording = published.filter((s) => s.error === undefined);
  try {
    onPublished(recording.filter((s) => s.outcome === "settled"));
    for (const s of recording) s.phase = "recorded";
  } catch (error) {
    // Some of the lines may be there.
    for (const s of recording) Object.assign(s, { error, mayBeRecorded: true });
  }
}

/** When a process was stopped after the commit, recovery may have gone on in its place: then the marker is gone. */
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

/** Where the record goes when something else stands at its final name. */
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
