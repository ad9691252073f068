/** Finishes a settlement that a dead process had begun, from the record that it had written. */
import { type DecodedRecord, decodeRecord } from "../../codec/records.ts";
import { formatName, nextAttempt } from "../../core/names.ts";
import type { Task } from "../../core/task.ts";
import { type Claim, readClaimIfThere } from "../claim/claim.ts";
import { moved, readIfThere, touchIfThere, unlinkIfThere } from "../files/steps.ts";
import { pathIn, type Trays } from "../files/trays.ts";
import { skipIn } from "../find/failures.ts";
import { recordOfSubmission } from "../find/settled-record.ts";
import { recheckSkip } from "../retry/skip.ts";
import { reopenResults, resultsAreLost } from "../settle/batch-settle.ts";
import { besidePath, finalPath, noteBeside, type Settlement, settleAll } from "../settle/settle.ts";
import type { Recoverer, SettledFacts } from "./recoverer.ts";

/** Finishes publishing the staged record: the commit was made, so the task is settled. */
export async function publishCommitted(r: Recoverer, marker: Claim): Promise<void> {
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
    const group = readClaimIfThere(trays, marker)?.task.group;
    if (trays.storage.look(marker.path) === undefined) return;
    if (marker.name.isBatch === true) reopenResults(trays, settlement);
    unlinkIfThere(trays, staged);
    if (moved(trays, marker.path, pathIn(trays.processing, formatName(next)))) {
      r.onRecovered({ action: "reopened", name: marker.name, next, group });
    }
    return;
  }
  if (isTakenAway || trays.storage.look(staged) === undefined) {
    // The record was published, and only the marker is left; or a retry or another process has moved the record since.
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
export async function tidySettled(r: Recoverer, claim: Claim): Promise<boolean> {
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

export function noteConflict(
  r: Recoverer,
  { claim, recordAs, task }: Settlement,
  of: { agentId: string; lease: string },
): void {
  if (recordAs !== undefined)
    r.onRecovered({ action: "conflict", name: claim.name, ...of, recordAs, group: task?.group });
}
