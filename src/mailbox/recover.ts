/**
 * Recover: take back what the dead left in `processing/`, and finish what they had begun to settle. Any number of
 * recoverers may run at once; each step is a rename or link that only one can win.
 */
import { decodeRecord } from "../codec/records.ts";
import type { DecodedTask } from "../codec/task-codec.ts";
import type { BatchCounts } from "../core/batch.ts";
import { wallSeconds } from "../core/clock.ts";
import { ErrInvalidTask, systemCode } from "../core/errors.ts";
import { BATCH_AGENT } from "../core/matching.ts";
import {
  formatName,
  leaseOf,
  leasesOfAttempt,
  nextAttempt,
  type ProcessingName,
  parseName,
  parsePlainClaim,
  withStage,
} from "../core/names.ts";
import type { Task } from "../core/task.ts";
import { isCancelling, processOf } from "../host/identity.ts";
import { takeOverResults } from "./batch-results.ts";
import { reopenResults, resultsAreLost } from "./batch-settle.ts";
import {
  acceptPlainClaim,
  type Claim,
  claimAt,
  newSubmission,
  putBack,
  readClaim,
} from "./claim.ts";
import { newDeadLetter } from "./dead-letter.ts";
import { finishAside } from "./duplicates.ts";
import { finishQuarantine, hasReason } from "./quarantine.ts";
import { finishRetry } from "./retry.ts";
import { besidePath, finalPath, noteBeside, type Settlement, settleAll } from "./settle.ts";
import { recordPaths } from "./settled-record.ts";
import { moved, readIfThere, touchIfThere, unlinkIfThere } from "./steps.ts";
import { pathIn, type Trays } from "./trays.ts";

export interface Recoverer {
  trays: Trays;
  /** Makes the owner strings under which this recoverer settles. */
  newOwner: () => string;
  judge: (owner: string) => "alive" | "dead" | "unknown";
  /**
   * When the process of this owner last said elsewhere that it lives (epoch ms). For claims on files of another user, whose
   * times it may not be allowed to set; undefined: it is not known to.
   */
  beatOf?: (owner: string) => number | undefined;
  /** Remembers how long each file has not changed, on this process's own clock. */
  observer: LeaseObserver;
  /** Markers that this recoverer committed and could not publish: it lives, so that nobody else would come for them. */
  unfinished: Set<string>;
  /** Ends every process of that lease; resolves when none is left. */
  endLease: (lease: string) => Promise<void>;
  policyOf: (task: Task | undefined) => { maxAttempts: number; agentId: string };
  onRecovered: (what: Recovered) => void;
  /** Journal lines for a settlement that this recovery published or found published. */
  onSettled: (settled: Settlement, facts: SettledFacts) => void;
}

export interface SettledFacts {
  agentId: string;
  error: string | null;
  kind: string | null;
  /** True when the dead owner had published it, and so may have written the journal lines too. */
  mayBeRecorded: boolean;
}

export type Recovered =
  | {
      action: "reclaimed";
      name: ProcessingName;
      next: ProcessingName;
      reason: "dead" | "silent";
      agentId: string;
      /** No run is left after the next one. */
      isLastRun: boolean;
    }
  | { action: "failed"; name: ProcessingName; reason: "dead" | "silent"; agentId: string }
  | { action: "published"; name: ProcessingName }
  /** Something else stands at the final name of a record, which is published as `recordAs` (relative to the mailbox). */
  | { action: "conflict"; name: ProcessingName; agentId: string; lease: string; recordAs: string }
  | { action: "reopened"; name: ProcessingName; next: ProcessingName }
  | { action: "quarantined"; name: ProcessingName }
  | { action: "resubmitted"; name: ProcessingName }
  | { action: "reclaimed_foreign"; next: ProcessingName }
  | { action: "cleaned_foreign"; id: string };

export type RecoverStep =
  | { kind: "reclaim"; claim: Claim; reason: "dead" | "silent" }
  | { kind: "publish"; claim: Claim }
  | { kind: "finish"; name: ProcessingName }
  | { kind: "foreign"; id: string };

/** Measures silence on the observer's own monotonic clock: an mtime is compared with itself, never with a clock. */
export class LeaseObserver {
  private readonly seen = new Map<string, { mtimeMs: number; sinceMs: number }>();
  private lastLookMs: number | undefined;
  private readonly periodMs: number;

  /** @param periodMs how often the observer means to look; when it comes late by more than twice that, it was asleep itself */
  constructor(periodMs: number) {
    this.periodMs = periodMs;
  }

  /** Call once before each round. */
  beginRound(nowMs: number, files: ReadonlySet<string>): void {
    if (this.lastLookMs !== undefined && nowMs - this.lastLookMs > this.periodMs * 3) {
      for (const entry of this.seen.values()) entry.sinceMs = nowMs;
    }
    this.lastLookMs = nowMs;
    for (const file of this.seen.keys()) if (!files.has(file)) this.seen.delete(file);
  }

  /** For how long this file has shown this time (ms). */
  silenceMs(file: string, mtimeMs: number, nowMs: number): number {
    const entry = this.seen.get(file);
    if (entry === undefined || entry.mtimeMs !== mtimeMs) {
      this.seen.set(file, { mtimeMs, sinceMs: nowMs });
      return 0;
    }
    return nowMs - entry.sinceMs;
  }
}

/** A retry or quarantine takes microseconds: one that stands for this long (ms) was left behind. */
const UNFINISHED_MS = 1000;

/**
 * What is to be recovered among these names of `processing/`. Changes nothing.
 * @param isStart true at the start of the only supervisor: short-lived markers are leftovers then
 */
export function findRecoverable(
  r: Recoverer,
  files: readonly string[],
  leaseTtlMs: number,
  isStart = false,
): RecoverStep[] {
  const nowMs = r.trays.clock.monotonicMs();
  const steps: RecoverStep[] = [];
  r.observer.beginRound(nowMs, new Set(files));
  const silentFor = (file: string, limitMs: number, owner?: string): boolean => {
    const facts = r.trays.storage.look(pathIn(r.trays.processing, file));
    if (facts === undefined) return false;
    const isOurs = owner === undefined || facts.uid === process.getuid?.();
    // Whichever of the two changes, the sum does.
    const signOfLifeMs = facts.mtimeMs + (isOurs ? 0 : (r.beatOf?.(owner) ?? 0));
    return r.observer.silenceMs(file, signOfLifeMs, nowMs) >= limitMs;
  };
  const verdicts = new Map<string, ReturnType<Recoverer["judge"]>>();
  // One process holds many leases: it is asked for once a round.
  const isDead = (owner: string): boolean => {
    const process = processOf(owner);
    const known = verdicts.get(process) ?? r.judge(owner);
    verdicts.set(process, known);
    return known === "dead";
  };
  for (const file of files) {
    const name = parseName(file);
    if (name === undefined) {
      const id = parsePlainClaim(file);
      if (id !== undefined && silentFor(file, leaseTtlMs)) steps.push({ kind: "foreign", id });
      continue;
    }
    const claim: Claim = { name, file, path: pathIn(r.trays.processing, file) };
    switch (name.stage) {
      case "ready":
        break;
      case "w":
        if (isDead(name.token)) steps.push({ kind: "reclaim", claim, reason: "dead" });
        else if (silentFor(file, leaseTtlMs, name.token))
          steps.push({ kind: "reclaim", claim, reason: "silent" });
        break;
      case "ok":
      case "err":
        if (isDead(name.token) || r.unfinished.has(file) || silentFor(file, leaseTtlMs))
          steps.push({ kind: "publish", claim });
        break;
      case "bad":
      case "again":
        if (isStart || silentFor(file, UNFINISHED_MS)) steps.push({ kind: "finish", name });
        break;
    }
  }
  return steps;
}

/** Takes one step. Losing a race to another recoverer is no error. */
export async function recoverStep(r: Recoverer, step: RecoverStep): Promise<void> {
  switch (step.kind) {
    case "reclaim":
      return reclaim(r, step.claim, step.reason);
    case "publish":
      return publishCommitted(r, step.claim);
    case "finish":
      if (step.name.stage === "bad") {
        // Without a reason it was only taken aside, as a resend perhaps.
        if (!hasReason(r.trays, step.name) && finishAside(r.trays, step.name) !== "other") return;
        await finishQuarantine(r.trays, step.name);
        r.onRecovered({ action: "quarantined", name: step.name });
      } else {
        await finishRetry(r.trays, step.name);
        r.onRecovered({ action: "resubmitted", name: step.name });
      }
      return;
    case "foreign":
      return reclaimForeign(r, step.id);
  }
}

async function reclaim(r: Recoverer, claim: Claim, reason: "dead" | "silent"): Promise<void> {
  // Who died may have held it only to cancel it: what runs is of an earlier lease, no attempt was begun under this one,
  // and perhaps its time has not come yet.
  const wasCancelling = isCancelling(claim.name.token);
  // First its processes, then its lease: two runs of one task must not overlap.
  await r.endLease(wasCancelling ? leasesOfAttempt(claim.name) : leaseOf(claim.name));
  const decoded = tryRead(r.trays, claim);
  const { maxAttempts, ...policy } = r.policyOf(decoded?.task);
  const agentId = claim.name.isBatch === true ? BATCH_AGENT : policy.agentId;
  if (wasCancelling || claim.name.attempt < maxAttempts) {
    const dueMs = (decoded?.task.not_before ?? 0) * 1000;
    const delayMs = Math.max(0, dueMs - r.trays.clock.wallMs());
    const next = putBack(r.trays, claim, delayMs, !wasCancelling);
    const isLastRun = claim.name.attempt + 1 >= maxAttempts;
    if (next !== undefined)
      r.onRecovered({ action: "reclaimed", name: claim.name, next, reason, agentId, isLastRun });
    return;
  }
  const settler = r.newOwner();
  const batch =
    claim.name.isBatch === true
      ? await gatherCounts(r.trays, withStage(claim.name, "err", settler))
      : undefined;
  const now = wallSeconds(r.trays.clock);
  const died =
    reason === "dead" ? "its worker died" : "its worker fell silent and the lease expired";
  const error = `${died} during attempt ${claim.name.attempt} of ${maxAttempts}`;
  const settlement = newDeadLetter(
    r.trays,
    claim,
    {
      error,
      code: "ErrWorkerDied",
      kind: "lease_expired",
      agentId,
      attempts: claim.name.attempt,
      lastAttemptAt: now,
      batch,
    },
    decoded,
    settler,
  );
  await settleAll(r.trays, [settlement], ([settled]) => {
    if (settled !== undefined)
      r.onSettled(settled, { agentId, error, kind: "lease_expired", mayBeRecorded: false });
  });
  if (settlement.error !== undefined) {
    r.unfinished.add(settlement.marker);
    throw settlement.error;
  }
  noteConflict(r, settlement, { agentId, lease: leaseOf(claim.name) });
  if (settlement.outcome === "settled")
    r.onRecovered({ action: "failed", name: claim.name, reason, agentId });
}

function noteConflict(
  r: Recoverer,
  { claim, recordAs }: Settlement,
  of: { agentId: string; lease: string },
): void {
  if (recordAs !== undefined)
    r.onRecovered({ action: "conflict", name: claim.name, ...of, recordAs });
}

/** Gathers what the lines of a batch came to under all its leases, for whoever settles it in their place. */
export async function gatherCounts(trays: Trays, name: ProcessingName): Promise<BatchCounts> {
  const results = await takeOverResults(trays, name, false);
  results.close();
  if (results.counts.lines === 0) unlinkIfThere(trays, results.path);
  return results.counts;
}

/** The commit was made, so the task is settled: finish publishing the staged record. */
async function publishCommitted(r: Recoverer, marker: Claim): Promise<void> {
  const { trays } = r;
  const status = marker.name.stage === "ok" ? "completed" : "failed";
  const staged = pathIn(trays.tmp, marker.file);
  const settlement: Settlement = {
    claim: marker,
    status,
    record: Buffer.alloc(0),
    marker: marker.file,
    phase: "committed",
  };
  const final = finalPath(trays, settlement);
  const beside = besidePath(trays, settlement);
  const isBeside = trays.storage.look(beside) !== undefined;
  const wasPublished = isBeside || trays.storage.look(final) !== undefined;
  // A disk that does not give it now is no evidence that it is lost: the task is settled, and must not run again.
  const bytes =
    readIfThere(trays, staged) ??
    (wasPublished ? readIfThere(trays, isBeside ? beside : final) : undefined);
  const decoded = bytes === undefined ? undefined : decodeRecord(bytes);
  if (
    bytes === undefined ||
    decoded === undefined ||
    (marker.name.isBatch === true && resultsAreLost(trays, settlement, decoded.record.batch))
  ) {
    // The record is lost or torn (a disk that lied about its sync): the marker still is the whole task. Run it again.
    const next = nextAttempt(marker.name);
    if (trays.storage.look(marker.path) === undefined) return;
    if (marker.name.isBatch === true) reopenResults(trays, settlement);
    unlinkIfThere(trays, staged);
    if (moved(trays, marker.path, pathIn(trays.processing, formatName(next)))) {
      r.onRecovered({ action: "reopened", name: marker.name, next });
    }
    return;
  }
  if (trays.storage.look(staged) === undefined) {
    // Published and tidied but for the marker.
    settlement.phase = "published";
    if (isBeside) noteBeside(trays, settlement);
    else settlement.outcome = "settled";
  }
  settlement.record = bytes;
  // Retention counts from when it can be seen, however long the machine was switched off in between.
  if (!wasPublished) touchIfThere(trays, staged);
  const { record } = decoded;
  const kept = record.status === "failed" ? record.file : undefined;
  if (kept !== undefined && /^failed\/[^/]+\.json$/.test(kept)) settlement.keptAs = kept;
  const facts: SettledFacts = {
    agentId: record.agent_id,
    error: record.status === "failed" ? record.error : null,
    kind: record.status === "failed" ? record.kind : null,
    mayBeRecorded: wasPublished,
  };
  // Records and journals speak of the lease that was committed, not of the marker's token.
  await settleAll(trays, [settlement], ([settled]) => {
    if (settled !== undefined) r.onSettled(settled, facts);
  });
  if (settlement.error !== undefined) throw settlement.error;
  r.unfinished.delete(marker.file);
  noteConflict(r, settlement, { agentId: record.agent_id, lease: record.lease });
  r.onRecovered({ action: "published", name: marker.name });
}

/** A program that only knows plain names died, or is too slow: its lease time is over. */
async function reclaimForeign(r: Recoverer, id: string): Promise<void> {
  const { trays } = r;
  const path = pathIn(trays.processing, `${id}.json`);
  if (recordPaths(trays, id).some((record) => trays.storage.look(record) !== undefined)) {
    // It settled and died before its last step.
    unlinkIfThere(trays, path);
    r.onRecovered({ action: "cleaned_foreign", id });
    return;
  }
  const decoded = tryRead(trays, { ...claimAt(trays, newSubmission(id, 1)), path });
  const next = newSubmission(id, (decoded?.task.attempts ?? 0) + 1);
  if (acceptPlainClaim(trays, next)) r.onRecovered({ action: "reclaimed_foreign", next });
}

/** The task, or undefined when the file holds none. A disk that does not give it now is no evidence: then it is thrown. */
function tryRead(trays: Trays, claim: Claim): DecodedTask | undefined {
  if (claim.name.isBatch === true) return undefined;
  try {
    return readClaim(trays, claim);
  } catch (error) {
    if (error instanceof ErrInvalidTask || systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
