/**
 * What settling a batch does beside settling a task: its results are published before its record, and the batch itself
 * is kept beside them instead of travelling inside the record. Each step may be repeated.
 */
import { join } from "node:path";
import type { BatchCounts } from "../core/batch.ts";
import { systemCode } from "../core/errors.ts";
import {
  besideId,
  type ProcessingName,
  parseName,
  prefixOf,
  resultsName,
  settledBatchName,
} from "../core/names.ts";
import { listStagedResults, stagedResultsPath } from "./batch-results.ts";
import { hasLive } from "./locate.ts";
import type { Settlement } from "./settle.ts";
import { moved, unlinkIfThere } from "./steps.ts";
import { type Trays, withTrays } from "./trays.ts";

/** Where its results are staged: the marker's token says who gathered them. */
export function resultsOf(trays: Trays, { marker }: Settlement): string {
  return stagedResultsPath(trays, parseName(marker) as ProcessingName);
}

/** False for a batch that ended before it began. */
export function hasResults(trays: Trays, s: Settlement): boolean {
  return trays.storage.look(resultsOf(trays, s)) !== undefined;
}

/** A crash after it leaves results without a record, and the marker: recovery comes here again. */
export function publishResults(trays: Trays, s: Settlement, dir: string): void {
  const { name } = s.claim;
  const finals = [resultsName(name.id), resultsName(besideId(name))];
  linkBeside(trays, resultsOf(trays, s), dir, finals);
}

/** Before its record, so that what lasts of the record lasts of the batch. A crash after it leaves the batch under two names. */
export function keepBatch(trays: Trays, s: Settlement, dir: string): void {
  const marker = join(trays.processing, s.marker);
  if (trays.storage.look(marker)?.kind === "file") linkBeside(trays, marker, dir, [keptName(s)]);
}

/** Last, before the marker goes: what could bear no second name gives up its first, as a directory that was put in its place. */
export function keepRest(trays: Trays, s: Settlement, dir: string): void {
  const marker = join(trays.processing, s.marker);
  const facts = trays.storage.look(marker);
  // An older mailchute linked it here. With a second name it is kept, or was and is retried already.
  if (facts?.kind === "file" && facts.nlink === 1) keepBatch(trays, s, dir);
  else if (facts !== undefined && facts.kind !== "file")
    withTrays(trays, () => trays.storage.rename(marker, join(dir, keptName(s))));
}

function keptName({ claim }: Settlement): string {
  return settledBatchName(claim.name.id, claim.name.submission);
}

/** The checkpoints of all its leases. */
export function dropStagedResults(trays: Trays, { claim }: Settlement): void {
  for (const file of listStagedResults(trays, prefixOf(claim.name)))
    unlinkIfThere(trays, join(trays.tmp, file));
}

/** True when the record speaks of results that no disk has any more: then it settles nothing. */
export function resultsAreLost(
  trays: Trays,
  s: Settlement,
  counts: BatchCounts | undefined,
): boolean {
  return (
    (counts?.lines ?? 0) > 0 && !hasResults(trays, s) && publishedResults(trays, s) === undefined
  );
}

/** The commit is taken back: what was published becomes a checkpoint again, and the batch is not a settled one. */
export function reopenResults(trays: Trays, s: Settlement): void {
  const kept = join(s.status === "completed" ? trays.outbox : trays.failed, keptName(s));
  const facts = trays.storage.look(kept);
  if (facts?.ino === trays.storage.look(join(trays.processing, s.marker))?.ino)
    unlinkIfThere(trays, kept);
  const published = publishedResults(trays, s);
  if (published === undefined) return;
  if (hasResults(trays, s)) unlinkIfThere(trays, published);
  else moved(trays, published, resultsOf(trays, s));
}

/** The results of this settlement in the tray, as far as can be told. */
function publishedResults(trays: Trays, s: Settlement): string | undefined {
  const path = join(
    s.status === "completed" ? trays.outbox : trays.failed,
    resultsName(s.claim.name.id),
  );
  const facts = trays.storage.look(path);
  if (facts === undefined) return undefined;
  const staged = trays.storage.look(resultsOf(trays, s));
  return staged === undefined || staged.ino === facts.ino ? path : undefined;
}

/** For a worker that lost its lease: removes the results that it gathered, if the batch has settled. Otherwise another worker may still take them over. */
export function dropOwnResults(trays: Trays, name: ProcessingName): void {
  if (!hasLive(trays, prefixOf(name))) unlinkIfThere(trays, stagedResultsPath(trays, name));
}

/** Links under the first of these names where no other file stands, which stays. */
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
      // Gone by now: the process that tidied it up had published it.
      if (code === "ENOENT") return;
      if (code !== "EEXIST") throw error;
      if (trays.storage.look(final)?.ino === ours.ino) return;
    }
  }
}
