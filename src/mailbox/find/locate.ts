/**
 * Finds a task by its id, from names alone, without changing anything. It looks in the order in which a task moves: inbox,
 * `processing/`, record. So a task that moves on between two looks is found in its next place. A task that moves back, by a retry
 * or a release, can be missed: a caller that must not miss it looks again.
 */
import {
  errorName,
  foldId,
  formatName,
  inboxName,
  isUnclaimed,
  type ProcessingName,
  parseName,
  parsePlainClaim,
  resultName,
} from "../../core/names.ts";
import type { Claim } from "../claim/claim.ts";
import { pathIn, type Tray, type Trays } from "../files/trays.ts";

export interface Place {
  tray: Tray;
  id: string;
  path: string;
  /** Its parsed name in `processing/`; undefined for the plain claim of a foreign worker. */
  name?: ProcessingName | undefined;
  /** Set when it is a batch in the inbox. */
  isBatch?: true;
}

/** The place of this id now. A file that is being refused ("bad") does not count as the task of its id. */
export function locate(trays: Trays, id: string): Place | undefined {
  return findWaiting(trays, id) ?? findInProcessing(trays, id) ?? findRecord(trays, id);
}

/** The task or batch in the inbox with exactly this id. */
export function findWaiting(trays: Trays, id: string): Place | undefined {
  for (const kind of [{}, { isBatch: true as const }]) {
    const path = pathIn(trays.inbox, inboxName({ id, ...kind }));
    if (trays.storage.look(path) !== undefined) return { tray: "inbox", id, path, ...kind };
  }
  return undefined;
}

/** All files in `processing/` of this id, ignoring upper and lower case. */
export function findLive(trays: Trays, id: string): Place[] {
  const key = foldId(id);
  return listLive(trays).filter((place) => foldId(place.id) === key);
}

/** The task of this id in `processing/`, ignoring upper and lower case; not one that is being refused. */
export function findInProcessing(trays: Trays, id: string): Place | undefined {
  return findLive(trays, id).find(({ name }) => name?.stage !== "bad");
}

/** Every task in `processing/`. The listing is short however long the backlog is. */
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

/** The two possible paths of this id's record, for a result and for an error. At most one is there. */
export function recordPaths(trays: Trays, id: string): readonly [string, string] {
  return [pathIn(trays.outbox, resultName(id)), pathIn(trays.failed, errorName(id))];
}

/** The record with exactly this id. */
export function findRecord(trays: Trays, id: string): Place | undefined {
  const [outbox, failed] = recordPaths(trays, id);
  if (trays.storage.look(outbox) !== undefined) return { tray: "outbox", id, path: outbox };
  return trays.storage.look(failed) && { tray: "failed", id, path: failed };
}

/** The accepted task with exactly this id: ready, held at a gate or claimed. */
export function findClaim(trays: Trays, id: string): Claim | undefined {
  for (const { id: found, path, name } of findLive(trays, id))
    if (found === id && name !== undefined && (name.stage === "w" || isUnclaimed(name)))
      return { name, file: formatName(name), path };
  return undefined;
}

/** Whether a retry of this id is in progress. A refused file keeps its name in `failed/` until its name in the inbox is durable. */
export function isBeingRetried(trays: Trays, id: string): boolean {
  return findLive(trays, id).some((place) => place.name?.stage === "again" && place.id === id);
}

/**
 * Ids in `processing/`, in lower case; none when it cannot be listed: then only the supervisor, which checks before it accepts,
 * prevents a second run.
 */
export function liveIds(
  trays: Trays,
  without: readonly ProcessingName["stage"][] = [],
): Set<string> {
  let places: Place[] = [];
  try {
    places = listLive(trays);
  } catch {
    // The tray cannot be listed: see above.
  }
  const isCounted = ({ name }: Place): boolean =>
    name === undefined || !without.includes(name.stage);
  return new Set(places.filter(isCounted).map(({ id }) => foldId(id)));
}

/** Whether the task waits in the inbox, or is in `processing/` in a stage that counts. */
export function isInFlight(
  trays: Trays,
  id: string,
  without: readonly ProcessingName["stage"][] = [],
): boolean {
  return findWaiting(trays, id) !== undefined || liveIds(trays, without).has(foldId(id));
}

/** Whether a name in `processing/` begins with this prefix, so belongs to this submission; see `prefixOf`. */
export function hasLive({ storage, processing }: Trays, prefix: string): boolean {
  return storage.list(processing).some((file) => file.startsWith(prefix));
}

/** Whether a committed submission still has its marker. A marker that is gone never comes back. @param prefix see `prefixOf` */
export function isBeingSettled({ storage, processing }: Trays, prefix: string): boolean {
  return storage.list(processing).some((file) => {
    const stage = file.startsWith(prefix) ? parseName(file)?.stage : undefined;
    return stage === "ok" || stage === "err";
  });
}
