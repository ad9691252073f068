/**
 * Where a task is, by its id, from names alone. Reads only. The order of looks is the order in which a task moves: inbox,
 * `processing/`, record. So a task that moves on between two looks is met in its next place. One that moves back, by a retry or
 * a release, can be missed: a caller that must not miss it looks again.
 */
import {
  foldId,
  formatName,
  inboxName,
  isUnclaimed,
  type ProcessingName,
  parseName,
  parsePlainClaim,
} from "../core/names.ts";
import type { Claim } from "./claim.ts";
import { recordPaths } from "./settled-record.ts";
import { pathIn, type Tray, type Trays } from "./trays.ts";

export interface Place {
  tray: Tray;
  id: string;
  path: string;
  /** What its name in `processing/` says; undefined for the plain claim of a foreign worker. */
  name?: ProcessingName | undefined;
  /** In the inbox: it is a batch. */
  isBatch?: true;
}

/** Where this id is now. A file that is being refused ("bad") is not the task of its id. */
export function locate(trays: Trays, id: string): Place | undefined {
  return findWaiting(trays, id) ?? findInProcessing(trays, id) ?? findRecord(trays, id);
}

/** The task or batch of this very id in the inbox. */
export function findWaiting(trays: Trays, id: string): Place | undefined {
  for (const kind of [{}, { isBatch: true as const }]) {
    const path = pathIn(trays.inbox, inboxName({ id, ...kind }));
    if (trays.storage.look(path) !== undefined) return { tray: "inbox", id, path, ...kind };
  }
  return undefined;
}

/** All that `processing/` holds of this id, in any case. */
export function findLive(trays: Trays, id: string): Place[] {
  const key = foldId(id);
  return listLive(trays).filter((place) => foldId(place.id) === key);
}

/** The task of this id in `processing/`, in any case, unless it is only being refused. */
export function findInProcessing(trays: Trays, id: string): Place | undefined {
  return findLive(trays, id).find(({ name }) => name?.stage !== "bad");
}

/** Every task in `processing/`: a short listing, whatever the backlog. */
export function listLive({ storage, processing }: Trays): Place[] {
  const places: Place[] = [];
  for (const file of storage.list(processing)) {
    const name = parseName(file);
    const id = name?.id ?? parsePlainClaim(file);
    if (id !== undefined)
      places.push({ tray: "processing", id, path: pathIn(processing, file), name });
  }
  return places;
}

/** The record of this very id. */
export function findRecord(trays: Trays, id: string): Place | undefined {
  const [outbox, failed] = recordPaths(trays, id);
  if (trays.storage.look(outbox) !== undefined) return { tray: "outbox", id, path: outbox };
  return trays.storage.look(failed) && { tray: "failed", id, path: failed };
}

/** The accepted task of this very id: ready, held at a gate or claimed. */
export function findClaim(trays: Trays, id: string): Claim | undefined {
  for (const { id: found, path, name } of findLive(trays, id))
    if (found === id && name !== undefined && (name.stage === "w" || isUnclaimed(name)))
      return { name, file: formatName(name), path };
  return undefined;
}

/** Whether a retry of this id is under way: until the name in the inbox is durable, a refused file keeps that in `failed/`, too. */
export function isBeingRetried(trays: Trays, id: string): boolean {
  return findLive(trays, id).some((place) => place.name?.stage === "again" && place.id === id);
}

/** Ids (folded) in `processing/`; none when it cannot be listed: then the supervisor, who looks before it accepts, is the only guard. */
export function liveIds(
  trays: Trays,
  without: readonly ProcessingName["stage"][] = [],
): Set<string> {
  let places: Place[] = [];
  try {
    places = listLive(trays);
  } catch {
    // See above.
  }
  const isCounted = ({ name }: Place): boolean =>
    name === undefined || !without.includes(name.stage);
  return new Set(places.filter(isCounted).map(({ id }) => foldId(id)));
}

/** Whether it waits in the inbox, or is in `processing/` in a stage that counts. */
export function isInFlight(
  trays: Trays,
  id: string,
  without: readonly ProcessingName["stage"][] = [],
): boolean {
  return findWaiting(trays, id) !== undefined || liveIds(trays, without).has(foldId(id));
}

/** Whether a name in `processing/` begins so: anything of one submission, see `prefixOf`. */
export function hasLive({ storage, processing }: Trays, prefix: string): boolean {
  return storage.list(processing).some((file) => file.startsWith(prefix));
}

/** Whether the marker of a committed submission stands. Once it is gone, it stays away. @param prefix see `prefixOf` */
export function isBeingSettled({ storage, processing }: Trays, prefix: string): boolean {
  return storage.list(processing).some((file) => {
    const stage = file.startsWith(prefix) ? parseName(file)?.stage : undefined;
    return stage === "ok" || stage === "err";
  });
}
