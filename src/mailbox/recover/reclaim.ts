import type { BatchCounts } from "../../core/batch.ts";
import { wallSeconds } from "../../core/clock.ts";
import { BATCH_AGENT } from "../../core/matching.ts";
import {
  leaseOf,
  leasesOfAttempt,
  type ProcessingName,
  prefixOf,
  stagedResultsName,
  withStage,
} from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import {
  isCancelling,
  isEditing,
  isOfEarlierBoot,
  isOfThisBoot,
  isRunner,
  isSkipping,
} from "../../host/identity.ts";
import {
  acceptPlainClaim,
  type Claim,
  claimAt,
  claimReady,
  newSubmission,
  putBack,
  readClaimIfThere,
} from "../claim/claim.ts";
import { requeue } from "../claim/requeue.ts";
import { unlinkIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { recordPaths } from "../find/locate.ts";
import { takeOverResults } from "../settle/batch-results.ts";
import { newDeadLetter } from "../settle/dead-letter.ts";
import { settleAll } from "../settle/settle.ts";
import { noteConflict, tidySettled } from "./finish-settlement.ts";
import type { ReclaimReason, Recoverer, RecoverStep } from "./recoverer.ts";

/** How often the death of its worker does not use up a run, and for how many runs this is remembered. */
const EXCUSED_MAX = 10;
const EXCUSED_KEPT_MAX = 10_000;

const DEATHS: Record<ReclaimReason, string> = {
  dead: "its worker died",
  memory: "its worker died because memory ran out",
  silent: "its worker fell silent and the lease expired",
};

export async function reclaim(
  r: Recoverer,
  { claim, reason, isBeside }: RecoverStep & { kind: "reclaim" },
): Promise<void> {
  if (isSkipping(claim.name.token)) return unskip(r, claim);
  // No run began under this claim: the task waits in the inbox for its time and its dependencies.
  if (isEditing(claim.name.token)) {
    if (requeue(r.trays, claim)) r.onRecovered({ action: "resubmitted", name: claim.name });
    return;
  }
  // The dead process may have claimed the task only to cancel it. Then the running programs belong to an earlier lease, no
  // attempt began under this one, and the task may have to wait until its `not_before`.
  const wasCancelling = isCancelling(claim.name.token);
  // End its processes before its lease: two runs of one task must not overlap.
  await r.endLease(wasCancelling ? leasesOfAttempt(claim.name) : leaseOf(claim.name));
  if (await tidySettled(r, claim)) return;
  const decoded = readClaimIfThere(r.trays, claim);
  const { maxAttempts, ...policy } = r.policyOf(decoded?.task);
  const agentId = claim.name.isBatch === true ? BATCH_AGENT : policy.agentId;
  const hasBegun = !wasCancelling && hasRunBegun(r, claim.name, decoded?.task);
  const isShort = reason === "memory";
  const isCrash = hasBegun && reason === "dead" && isOfEarlierBoot(claim.name.token);
  const isExcused = isCrash
    ? r.excusesCrash?.(claim.name) === true
    : (!hasBegun || isShort) && mayExcuse(r, claim.name, isShort);
  const isUsedUp = !wasCancelling && !isExcused;
  // A task whose worker shared its process gets one more run, alone in a process, before it fails because of the death.
  const isLeft = claim.name.attempt < maxAttempts + (isBeside ? 1 : 0);
  if (!isUsedUp || isLeft) {
    const dueMs = (decoded?.task.not_before ?? 0) * 1000;
    const delayMs = Math.max(0, dueMs - r.trays.clock.wallMs());
    const next = putBack(r.trays, claim, delayMs, isUsedUp);
    if (next === undefined) return;
    // A task whose worker died for lack of memory need not run alone: another process would need even more memory. And the crash of a
    // machine says nothing about the task.
    const isLastRun = next.attempt >= maxAttempts && (isUsedUp || !(isShort || isCrash));
    const group = decoded?.task.group;
    const of = { name: claim.name, next, reason, hasBegun, agentId, group, isLastRun };
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

/** Puts a task back into the inbox after its skipper died before it settled the task. The supervisor then judges again whether to skip it. */
async function unskip(r: Recoverer, claim: Claim): Promise<void> {
  if (await tidySettled(r, claim)) return;
  if (requeue(r.trays, claim)) r.onRecovered({ action: "unskipped", id: claim.name.id });
}

/** False when the dead owner certainly never began this run. */
function hasRunBegun(r: Recoverer, name: ProcessingName, task: Task | undefined): boolean {
  if (!isRunner(name.token)) return true;
  return name.isBatch === true
    ? r.trays.storage.look(pathIn(r.trays.tmp, stagedResultsName(name))) !== undefined
    : task === undefined || isTaskTraced(r, name, task);
}

/**
 * True if this death of the worker does not use up a run. The number of such deaths is limited: a task that kills its worker
 * before the run begins, or takes all memory itself, would otherwise run for ever.
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

/** Counts the results of a batch's lines under all its leases, for the process that settles the batch in place of its worker. */
export async function gatherCounts(trays: Trays, name: ProcessingName): Promise<BatchCounts> {
  const results = await takeOverResults(trays, name, false);
  results.close();
  if (results.counts.lines === 0) unlinkIfThere(trays, results.path);
  return results.counts;
}

/** Handles the expired claim of a program that only knows plain names: it died or is too slow. */
export async function reclaimForeign(r: Recoverer, id: string): Promise<void> {
  const { trays } = r;
  const path = pathIn(trays.processing, `${id}.json`);
  if (recordPaths(trays, id).some((record) => trays.storage.look(record) !== undefined)) {
    // The program settled the task and died before its last step.
    unlinkIfThere(trays, path);
    r.onRecovered({ action: "cleaned_foreign", id });
    return;
  }
  const decoded = readClaimIfThere(trays, {
    ...claimAt(trays, newSubmission(trays.clock, id, 1)),
    path,
  });
  const next = newSubmission(trays.clock, id, (decoded?.task.attempts ?? 0) + 1);
  if (acceptPlainClaim(trays, next))
    r.onRecovered({ action: "reclaimed_foreign", next, group: decoded?.task.group });
}
