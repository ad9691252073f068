/**
 * Recover: takes back what dead processes left in `processing/`, and finishes what they had begun to settle. Any number of
 * recoverers may run at once: each step is a rename or link that only one of them can win.
 */
import { type DecodedRecord, decodeRecord } from "../../codec/records.ts";
import type { DecodedTask } from "../../codec/task-codec.ts";
import type { BatchCounts } from "../../core/batch.ts";
import { wallSeconds } from "../../core/clock.ts";
import { ErrInvalidTask, systemCode } from "../../core/errors.ts";
import { BATCH_AGENT } from "../../core/matching.ts";
import {
  formatName,
  leaseOf,
  leasesOfAttempt,
  nextAttempt,
  type ProcessingName,
  parseName,
  parsePlainClaim,
  prefixOf,
  stagedResultsName,
  withStage,
} from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import {
  isCancelling,
  isEditing,
  isOfThisBoot,
  isRunner,
  isSkipping,
  processOf,
  wasBeside,
} from "../../host/identity.ts";
import {
  acceptPlainClaim,
  type Claim,
  claimAt,
  claimReady,
  newSubmission,
  putBack,
  readClaim,
} from "../claim/claim.ts";
import { requeue } from "../claim/requeue.ts";
import { moved, readIfThere, touchIfThere, unlinkIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { skipIn } from "../find/failures.ts";
import { recordPaths } from "../find/locate.ts";
import { recordOfSubmission } from "../find/settled-record.ts";
import { readSkipped, type SkippedTasks } from "../find/skipped-records.ts";
import { finishRetry } from "../retry/retry.ts";
import { recheckSkip } from "../retry/skip.ts";
import { takeOverResults } from "../settle/batch-results.ts";
import { reopenResults, resultsAreLost } from "../settle/batch-settle.ts";
import { newDeadLetter } from "../settle/dead-letter.ts";
import { finishQuarantine, hasReason } from "../settle/quarantine.ts";
import { besidePath, finalPath, noteBeside, type Settlement, settleAll } from "../settle/settle.ts";
import { finishAside } from "../submit/duplicates.ts";

export interface Recoverer {
  trays: Trays;
  /** Makes the owner strings under which this recoverer settles. */
  newOwner: () => string;
  judge: (owner: string) => "alive" | "dead" | "unknown";
  /**
   * When the process of this owner last reported elsewhere that it lives (epoch ms); undefined when that is not known. Needed for
   * claims on files of another user, because the owner may not be allowed to set their times.
   */
  beatOf?: (owner: string) => number | undefined;
  /** Remembers how long each file has not changed, on this process's own clock. */
  observer: LeaseObserver;
  /** Names that this recoverer holds and could not finish. As this process lives, no other recoverer would take them. */
  unfinished: Set<string>;
  /** How often the death of a worker did not use up a run: by submission, and also by run number where the run had not begun. */
  excused: Map<string, number>;
  /** The skipped tasks, when a retry is finished in this round. */
  skipped?: Promise<SkippedTasks> | undefined;
  /** Whether the process of a dead owner ended because the system gave it no memory. */
  lackedMemory?: (owner: string) => boolean;
  /** Ends every process of that lease; resolves when none is left. */
  endLease: (lease: string) => Promise<void>;
  policyOf: (task: Task | undefined) => { maxAttempts: number; agentId: string };
  /** Without it, every claimed run of a task counts as begun. */
  traces?: RunTraces;
  onRecovered: (what: Recovered) => void;
  /** Writes the journal lines for a settlement that this recovery published or found published. */
  onSettled: (settled: Settlement, facts: SettledFacts) => void;
}

/** The trace that a worker leaves before a run begins: a directory for a program, a journal line for a function. */
export interface RunTraces {
  /** The run's directory. A function has one, too, when its journal line could not be written. */
  dirOf: (name: ProcessingName) => string;
  /** Whether the task runs a program and not a function. */
  isProgram: (task: Task) => boolean;
  /** Whether that journal line is there; undefined when this cannot be known. */
  hasStarted: (name: ProcessingName) => boolean | undefined;
}

export interface SettledFacts {
  agentId: string;
  error: string | null;
  kind: string | null;
  /** True when the dead owner had published the record, and so may have written the journal lines too. */
  mayBeRecorded: boolean;
}

/** Why a claim is taken back: its owner died, died because memory was short, or fell silent. */
export type ReclaimReason = "dead" | "memory" | "silent";

export type Recovered =
  | {
      action: "reclaimed";
      name: ProcessingName;
      next: ProcessingName;
      reason: ReclaimReason;
      /** False: its worker died before the run began. */
      hasBegun: boolean;
      agentId: string;
      /** The death of its worker counts against the task, and only one run is left. */
      isLastRun: boolean;
    }
  | { action: "failed"; name: ProcessingName; reason: ReclaimReason; agentId: string }
  | { action: "published"; name: ProcessingName }
  /** A skip was not carried out: the task waits in the inbox again. */
  | { action: "unskipped"; id: string }
  /** Another file is at the final name of a record, which was published as `recordAs` (relative to the mailbox). */
  | { action: "conflict"; name: ProcessingName; agentId: string; lease: string; recordAs: string }
  | { action: "reopened"; name: ProcessingName; next: ProcessingName }
  | { action: "quarantined"; name: ProcessingName }
  | { action: "resubmitted"; name: ProcessingName }
  | { action: "reclaimed_foreign"; next: ProcessingName }
  | { action: "cleaned_foreign"; id: string };

export type RecoverStep =
  | {
      kind: "reclaim";
      claim: Claim;
      reason: ReclaimReason;
      /** Its worker held other tasks as well: this one need not have caused the death. */
      isBeside: boolean;
    }
  | { kind: "publish"; claim: Claim }
  /** The task's record is there, so nothing of the task may run: see `recordOfSubmission`. */
  | { kind: "tidy"; claim: Claim }
  | { kind: "finish"; name: ProcessingName }
  | { kind: "foreign"; id: string };

/** Measures silence on the observer's own monotonic clock: an mtime is compared only with its earlier value, never with a clock. */
export class LeaseObserver {
  private readonly seen = new Map<string, { mtimeMs: number; sinceMs: number }>();
  private lastLookMs: number | undefined;
  private readonly periodMs: number;

  /** True until the observer is first used. */
  get isNew(): boolean {
    return this.lastLookMs === undefined;
  }

  /** @param periodMs how often the observer is meant to look; when it is late by more than twice that, its own process was asleep */
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

  /** For how long the mtime of this file has been the same (ms). */
  silenceMs(file: string, mtimeMs: number, nowMs: number): number {
    const entry = this.seen.get(file);
    if (entry === undefined || entry.mtimeMs !== mtimeMs) {
      this.seen.set(file, { mtimeMs, sinceMs: nowMs });
      return 0;
    }
    return nowMs - entry.sinceMs;
  }
}

/** How many times the death of its worker does not use up a run, and how many such runs are remembered. */
const EXCUSED_MAX = 10;
const EXCUSED_KEPT_MAX = 10_000;
/** A retry or quarantine takes microseconds: one that is this old (ms) was left behind. */
const UNFINISHED_MS = 1000;

/**
 * Finds what has to be recovered among these names of `processing/`. Changes nothing.
 * @param isStart true at the start of the only supervisor: short-lived markers are then left over
 */
export function findRecoverable(
  r: Recoverer,
  files: readonly string[],
  leaseTtlMs: number,
  isStart = false,
): RecoverStep[] {
  const nowMs = r.trays.clock.monotonicMs();
  const steps: RecoverStep[] = [];
  // Files that a power cut brought back are there from the start.
  const isFirst = r.observer.isNew;
  r.observer.beginRound(nowMs, new Set(files));
  r.skipped = undefined;
  const silentFor = (file: string, limitMs: number, owner?: string): boolean => {
    const facts = r.trays.storage.look(pathIn(r.trays.processing, file));
    if (facts === undefined) return false;
    const isOurs = owner === undefined || facts.uid === process.getuid?.();
    // If either time changes, the sum changes.
    const signOfLifeMs = facts.mtimeMs + (isOurs ? 0 : (r.beatOf?.(owner) ?? 0));
    return r.observer.silenceMs(file, signOfLifeMs, nowMs) >= limitMs;
  };
  const verdicts = new Map<string, ReturnType<Recoverer["judge"]>>();
  const held = countHeld(files);
  const isBeside = ({ token }: ProcessingName): boolean =>
    isRunner(token) && (wasBeside(token) || (held.get(processOf(token)) ?? 0) > 1);
  // One process holds many leases: it is judged once a round.
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
      case "hold":
        if (isFirst && recordOfSubmission(r.trays, name) !== undefined)
          steps.push({ kind: "tidy", claim });
        break;
      case "w":
        if (isDead(name.token) || r.unfinished.has(file)) {
          const reason = r.lackedMemory?.(name.token) === true ? "memory" : "dead";
          steps.push({ kind: "reclaim", claim, reason, isBeside: isBeside(name) });
        } else if (silentFor(file, leaseTtlMs, name.token))
          steps.push({ kind: "reclaim", claim, reason: "silent", isBeside: isBeside(name) });
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

/** Counts how many of these claims each process holds. */
function countHeld(files: readonly string[]): Map<string, number> {
  const held = new Map<string, number>();
  for (const file of files) {
    const name = parseName(file);
    if (name?.stage !== "w") continue;
    const process = processOf(name.token);
    held.set(process, (held.get(process) ?? 0) + 1);
  }
  return held;
}

/** Takes one step. Losing a race to another recoverer is no error. */
export async function recoverStep(r: Recoverer, step: RecoverStep): Promise<void> {
  switch (step.kind) {
    case "reclaim":
      return reclaim(r, step);
    case "publish":
      return publishCommitted(r, step.claim);
    case "tidy":
      await tidySettled(r, step.claim);
      return;
    case "finish":
      if (step.name.stage === "bad") {
        // A file without a reason was only taken aside, perhaps as a resend.
        if (!hasReason(r.trays, step.name) && finishAside(r.trays, step.name) !== "other") return;
        await finishQuarantine(r.trays, step.name);
        r.onRecovered({ action: "quarantined", name: step.name });
      } else {
        // One search does for all retries of a round.
        const skipped = (): Promise<SkippedTasks> => (r.skipped ??= readSkipped(r.trays));
        if ((await finishRetry(r.trays, step.name, { skipped })) === "later") return;
        r.onRecovered({ action: "resubmitted", name: step.name });
      }
      return;
    case "foreign":
      return reclaimForeign(r, step.id);
  }
}

const DEATHS: Record<ReclaimReason, string> = {
  dead: "its worker died",
  memory: "its worker died for want of memory",
  silent: "its worker fell silent and the lease expired",
};

async function reclaim(
  r: Recoverer,
  { claim, reason, isBeside }: RecoverStep & { kind: "reclaim" },
): Promise<void> {
  if (isSkipping(claim.name.token)) return unskip(r, claim);
  // Nothing ran under it: the task waits for its time and its dependencies in the inbox.
  if (isEditing(claim.name.token)) {
    if (requeue(r.trays, claim)) r.onRecovered({ action: "resubmitted", name: claim.name });
    return;
  }
  // The dead process may have claimed the task only to cancel it. The programs that run then belong to an earlier lease, no attempt
  // began under this one, and the task may have to wait until its `not_before`.
  const wasCancelling = isCancelling(claim.name.token);
  // End its processes before its lease: two runs of one task must not overlap.
  await r.endLease(wasCancelling ? leasesOfAttempt(claim.name) : leaseOf(claim.name));
  if (await tidySettled(r, claim)) return;
  const decoded = tryRead(r.trays, claim);
  const { maxAttempts, ...policy } = r.policyOf(decoded?.task);
  const agentId = claim.name.isBatch === true ? BATCH_AGENT : policy.agentId;
  const hasBegun = !wasCancelling && hasRunBegun(r, claim.name, decoded?.task);
  const isShort = reason === "memory";
  const isUsedUp = !wasCancelling && !((!hasBegun || isShort) && mayExcuse(r, claim.name, isShort));
  // A task whose worker shared its process gets one more run, alone in a process, before it fails because of the death.
  const isLeft = claim.name.attempt < maxAttempts + (isBeside ? 1 : 0);
  if (!isUsedUp || isLeft) {
    const dueMs = (decoded?.task.not_before ?? 0) * 1000;
    const delayMs = Math.max(0, dueMs - r.trays.clock.wallMs());
    const next = putBack(r.trays, claim, delayMs, isUsedUp);
    if (next === undefined) return;
    // A task whose worker died of short memory need not run alone: another process would need still more memory.
    const isLastRun = next.attempt >= maxAttempts && (isUsedUp || !isShort);
    const of = { name: claim.name, next, reason, hasBegun, agentId, isLastRun };
    r.onRecovered({ action: "reclaimed", ...of });
    return;
  }
  const settler = r.newOwner();
  const isBatch = claim.name.isBatch === true;
  // Take the lease first: as long as a stopped worker still holds it, that worker may remove the results of others.
  const taken = isBatch ? claimReady(r.trays, claim.name, settler) : claim;
  if (taken === undefined) return;
  if (isBatch) r.unfinished.add(taken.file);
  const batch = isBatch
    ? await gatherCounts(r.trays, withStage(claim.name, "err", settler))
    : undefined;
  const now = wallSeconds(r.trays.clock);
  const error = `${DEATHS[reason]} during attempt ${claim.name.attempt} of ${maxAttempts}`;
  const settlement = newDeadLetter(
    r.trays,
    { ...claim, path: taken.path },
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
  r.unfinished.delete(taken.file);
  noteConflict(r, settlement, { agentId, lease: leaseOf(claim.name) });
  if (settlement.outcome === "settled")
    r.onRecovered({ action: "failed", name: claim.name, reason, agentId });
}

/** Puts a task back into the inbox whose skipper died before it had settled it: whether it is to be skipped is looked at again. */
async function unskip(r: Recoverer, claim: Claim): Promise<void> {
  if (await tidySettled(r, claim)) return;
  if (requeue(r.trays, claim)) r.onRecovered({ action: "unskipped", id: claim.name.id });
}

/** False when it is known that the dead owner never began this run. */
function hasRunBegun(r: Recoverer, name: ProcessingName, task: Task | undefined): boolean {
  if (!isRunner(name.token)) return true;
  return name.isBatch === true
    ? r.trays.storage.look(pathIn(r.trays.tmp, stagedResultsName(name))) !== undefined
    : task === undefined || isTaskTraced(r, name, task);
}

/**
 * Whether the death of its worker may once more not use up a run. The number is limited: a task that kills its worker before the
 * run begins, or takes all memory itself, would otherwise run for ever.
 */
function mayExcuse(r: Recoverer, name: ProcessingName, isShort: boolean): boolean {
  const key = isShort ? prefixOf(name) : `${prefixOf(name)}${name.attempt}`;
  const times = (r.excused.get(key) ?? 0) + 1;
  if (times > EXCUSED_MAX || r.excused.size >= EXCUSED_KEPT_MAX) return false;
  r.excused.set(key, times);
  return true;
}

function isTaskTraced({ trays, traces }: Recoverer, name: ProcessingName, task: Task): boolean {
  if (traces === undefined || trays.storage.look(traces.dirOf(name)) !== undefined) return true;
  if (traces.isProgram(task)) return false;
  // Journals are not synced: after a power cut, or on another machine, a line may be missing.
  return !isOfThisBoot(name.token) || traces.hasStarted(name) !== false;
}

function noteConflict(
  r: Recoverer,
  { claim, recordAs }: Settlement,
  of: { agentId: string; lease: string },
): void {
  if (recordAs !== undefined)
    r.onRecovered({ action: "conflict", name: claim.name, ...of, recordAs });
}

/** Counts the results of a batch's lines under all its leases, for the process that settles the batch in place of its worker. */
export async function gatherCounts(trays: Trays, name: ProcessingName): Promise<BatchCounts> {
  const results = await takeOverResults(trays, name, false);
  results.close();
  if (results.counts.lines === 0) unlinkIfThere(trays, results.path);
  return results.counts;
}

/** Finishes publishing the staged record: the commit was made, so the task is settled. */
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
  const isTakenAway = hasNameElsewhere(trays, staged, [final, beside]);
  const wasPublished = isTakenAway || isBeside || trays.storage.look(final) !== undefined;
  // A disk error does not prove that the record is lost: the task is settled, and must not run again.
  const bytes =
    readIfThere(trays, staged) ??
    (wasPublished ? readIfThere(trays, isBeside ? beside : final) : undefined);
  const decoded = bytes === undefined ? undefined : decodeRecord(bytes);
  if (
    bytes === undefined ||
    decoded === undefined ||
    (marker.name.isBatch === true && resultsAreLost(trays, settlement, decoded.record.batch))
  ) {
    // The record is lost or incomplete (the disk lied about its sync). The marker still holds the whole task, which runs again.
    const next = nextAttempt(marker.name);
    if (trays.storage.look(marker.path) === undefined) return;
    if (marker.name.isBatch === true) reopenResults(trays, settlement);
    unlinkIfThere(trays, staged);
    if (moved(trays, marker.path, pathIn(trays.processing, formatName(next)))) {
      r.onRecovered({ action: "reopened", name: marker.name, next });
    }
    return;
  }
  if (isTakenAway || trays.storage.look(staged) === undefined) {
    // The record was published and only the marker is left; or a retry or another process has moved the record on.
    settlement.phase = "published";
    if (isBeside) noteBeside(trays, settlement);
    else settlement.outcome = "settled";
  }
  settlement.record = bytes;
  settlement.task = decoded.record.task as Task | undefined;
  // Retention counts from now, when the record becomes visible, however long the machine was off in between.
  if (!wasPublished) touchIfThere(trays, staged);
  await finishSettlement(r, settlement, decoded.record, wasPublished);
}

/** Whether a staged record has a second name other than these: it was published, and then moved by another process. */
function hasNameElsewhere(trays: Trays, staged: string, names: readonly string[]): boolean {
  const facts = trays.storage.look(staged);
  if (facts === undefined || facts.nlink < 2) return false;
  return names.every((name) => trays.storage.look(name)?.ino !== facts.ino);
}

/** If this submission already has a record, removes the claim as its settler would remove the marker. False when there is no record. */
async function tidySettled(r: Recoverer, claim: Claim): Promise<boolean> {
  const { trays } = r;
  const settled = recordOfSubmission(trays, claim.name);
  const bytes = settled === undefined ? undefined : readIfThere(trays, settled.path);
  if (settled === undefined || bytes === undefined) return false;
  const { record, path } = settled;
  const settlement: Settlement = {
    claim,
    status: record.status,
    record: bytes,
    marker: claim.file,
    phase: "published",
    task: record.task as Task | undefined,
    outcome: "settled",
  };
  if (path === besidePath(trays, settlement)) noteBeside(trays, settlement);
  await finishSettlement(r, settlement, record, true);
  return true;
}

/** Takes the settlement as far as possible, and reports it. */
async function finishSettlement(
  r: Recoverer,
  settlement: Settlement,
  record: DecodedRecord["record"],
  wasPublished: boolean,
): Promise<void> {
  const { trays } = r;
  const { name, file } = settlement.claim;
  const kept = record.status === "failed" ? record.file : undefined;
  if (kept !== undefined && /^failed\/[^/]+\.json$/.test(kept)) settlement.keptAs = kept;
  const facts: SettledFacts = {
    agentId: record.agent_id,
    error: record.status === "failed" ? record.error : null,
    kind: record.status === "failed" ? record.kind : null,
    mayBeRecorded: wasPublished,
  };
  // Records and journals name the lease that was committed, not the marker's token.
  const cause = skipIn(record)?.cause;
  await settleAll(trays, [settlement], ([settled]) => {
    if (settled === undefined) return undefined;
    r.onSettled(settled, facts);
    return cause === undefined ? undefined : recheckSkip(trays, name.id, cause);
  });
  if (settlement.error !== undefined) throw settlement.error;
  r.unfinished.delete(file);
  noteConflict(r, settlement, { agentId: record.agent_id, lease: record.lease });
  r.onRecovered({ action: "published", name });
}

/** Handles the expired claim of a program that only knows plain names: it died or is too slow. */
async function reclaimForeign(r: Recoverer, id: string): Promise<void> {
  const { trays } = r;
  const path = pathIn(trays.processing, `${id}.json`);
  if (recordPaths(trays, id).some((record) => trays.storage.look(record) !== undefined)) {
    // The program settled the task and died before its last step.
    unlinkIfThere(trays, path);
    r.onRecovered({ action: "cleaned_foreign", id });
    return;
  }
  const decoded = tryRead(trays, { ...claimAt(trays, newSubmission(trays.clock, id, 1)), path });
  const next = newSubmission(trays.clock, id, (decoded?.task.attempts ?? 0) + 1);
  if (acceptPlainClaim(trays, next)) r.onRecovered({ action: "reclaimed_foreign", next });
}

/** The task, or undefined when the file holds none. A disk error proves nothing, so it is thrown. */
function tryRead(trays: Trays, claim: Claim): DecodedTask | undefined {
  if (claim.name.isBatch === true) return undefined;
  try {
    return readClaim(trays, claim);
  } catch (error) {
    if (error instanceof ErrInvalidTask || systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
