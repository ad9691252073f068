/**
 * The extra steps of settling a batch: its results are published before its record, and the batch file is kept beside them because
 * the record does not contain it. Each step may be repeated.
 */
import { join } from "node:path";
import type { BatchCounts } from "../../core/batch.ts";
import { systemCode } from "../../core/errors.ts";
import {
  besideId,
  type ProcessingName,
  parseName,
  prefixOf,
  resultsName,
  settledBatchName,
} from "../../core/names.ts";
import type { Claim } from "../claim/claim.ts";
import { moved, unlinkIfThere } from "../files/steps.ts";
import { type Trays, withTrays } from "../files/trays.ts";
import { hasLive } from "../find/locate.ts";
import { listStagedResults, stagedResultsPath } from "./batch-results.ts";

/** What it needs to know of a settlement. */
interface BatchEnd {
  claim: Claim;
  marker: string;
  status: "completed" | "failed";
}

/** Path of the staged results. The marker's token says which lease collected them. */
export function resultsOf(trays: Trays, { marker }: BatchEnd): string {
  return stagedResultsPath(trays, parseName(marker) as ProcessingName);
}

/** False for a batch that ended before any line ran. */
export function hasResults(trays: Trays, s: BatchEnd): boolean {
  return trays.storage.look(resultsOf(trays, s)) !== undefined;
}

/** Publishes the results. A crash after this leaves results without a record, and the marker; recovery then repeats this step. */
export function publishResults(trays: Trays, s: BatchEnd, dir: string): void {
  const { name } = s.claim;
  const finals = [resultsName(name.id), resultsName(besideId(name))];
  linkBeside(trays, resultsOf(trays, s), dir, finals);
}

/**
 * Keeps the batch file. This happens before the record is published, so that the batch is there whenever the record is. A crash
 * after this leaves the batch under two names.
 */
export function keepBatch(trays: Trays, s: BatchEnd, dir: string): void {
  const marker = join(trays.processing, s.marker);
  if (trays.storage.look(marker)?.kind === "file") linkBeside(trays, marker, dir, [keptName(s)]);
}

/**
 * The last step before the marker is deleted. Something that cannot have a second name, such as a directory put in the batch's
 * place, is moved instead.
 */
export function keepRest(trays: Trays, s: BatchEnd, dir: string): void {
  const marker = join(trays.processing, s.marker);
  const facts = trays.storage.look(marker);
  // An older mailchute may have linked the record only. A file with two names is kept already, or was kept and has been retried.
  if (facts?.kind === "file" && facts.nlink === 1) keepBatch(trays, s, dir);
  else if (facts !== undefined && facts.kind !== "file")
    withTrays(trays, () => trays.storage.rename(marker, join(dir, keptName(s))));
}

function keptName({ claim }: BatchEnd): string {
  return settledBatchName(claim.name.id, claim.name.submission);
}

/** Deletes the checkpoints of all its leases. */
export function dropStagedResults(trays: Trays, { claim }: BatchEnd): void {
  for (const file of listStagedResults(trays, prefixOf(claim.name)))
    unlinkIfThere(trays, join(trays.tmp, file));
}

/** True when the record names results that are no longer on disk. Such a record settles nothing. */
export function resultsAreLost(
  trays: Trays,
  s: BatchEnd,
  counts: BatchCounts | undefined,
): boolean {
  return (
    (counts?.lines ?? 0) > 0 && !hasResults(trays, s) && publishedResults(trays, s) === undefined
  );
}

/** Takes the commit back: published results become a checkpoint again, and the batch no longer counts as settled. */
export function reopenResults(trays: Trays, s: BatchEnd): void {
  const kept = join(s.status === "completed" ? trays.outbox : trays.failed, keptName(s));
  const facts = trays.storage.look(kept);
  if (facts?.ino === trays.storage.look(join(trays.processing, s.marker))?.ino)
    unlinkIfThere(trays, kept);
  const published = publishedResults(trays, s);
  if (published === undefined) return;
  if (hasResults(trays, s)) unlinkIfThere(trays, published);
  else moved(trays, published, resultsOf(trays, s));
}

/**
 * The path of this settlement's published results; undefined when there are none. If its staged results are gone, the published
 * ones count as its own.
 */
function publishedResults(trays: Trays, s: BatchEnd): string | undefined {
  const path = join(
    s.status === "completed" ? trays.outbox : trays.failed,
    resultsName(s.claim.name.id),
  );
  const facts = trays.storage.look(path);
  if (facts === undefined) return undefined;
  const staged = trays.storage.look(resultsOf(trays, s));
  return staged === undefined || staged.ino === facts.ino ? path : undefined;
}

/** Removes the results of a worker that lost its lease, if the batch has settled. Otherwise another worker may still take them over. */
export function dropOwnResults(trays: Trays, name: ProcessingName): void {
  if (!hasLive(trays, prefixOf(name))) unlinkIfThere(trays, stagedResultsPath(trays, name));
}

/** Links the file under the first of these names that is free. A file under another name stays. */
function linkBeside(trays: Trays, from: string, dir: string, names: readonly string[]): void {
  const ours = trays.storage.look(from);
  if (ours === undefined) return;
  for (const name of names) {
    const final = join(dir, name);
    try {
      withTrays(trays, () => trays.storage.link(from, final));
      return;
    } catch (error) {
      const code = systemCode(error);
      // The file is gone: another process published it and cleaned up.
      if (code === "ENOENT") return;
      if (code !== "EEXIST") throw error;
      if (trays.storage.look(final)?.ino === ours.ino) return;
    }
  }
}
