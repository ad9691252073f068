/** Retry: a dead letter goes back into the inbox. One rename takes it out of `failed/`; from then on recovery finishes. */
import { join } from "node:path";
import { decodeRecord } from "../codec/records.ts";
import { ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound } from "../core/errors.ts";
import {
  errorName,
  foldId,
  formatName,
  inboxName,
  type ProcessingName,
  resultsName,
  submissionOf,
} from "../core/names.ts";
import { newMarker } from "./claim.ts";
import { findTaskText, publishTask } from "./duplicates.ts";
import { randomToken } from "./random.ts";
import { finishRetryBatch, retryBatch } from "./retry-batch.ts";
import { readRecord, recordPaths } from "./settled-record.ts";
import { linked, moved, readIfThere, unlinkIfThere } from "./steps.ts";
import { liveIds } from "./submit.ts";
import { type Trays, withTrays } from "./trays.ts";

/**
 * Runs a failed task again, from its first attempt, under its own id.
 * @throws ErrTaskNotFound, ErrTaskExists (it waits or runs again already), ErrInvalidTransition (it cannot be run again)
 */
export async function retry(trays: Trays, id: string): Promise<void> {
  const [completed, failed] = recordPaths(trays, id);
  const bytes = readIfThere(trays, failed);
  if (bytes === undefined) {
    if (trays.storage.look(completed) !== undefined) {
      if (trays.storage.look(join(trays.outbox, resultsName(id))) !== undefined)
        return retryBatch(trays, id, completed);
      const failures = readRecord(trays, completed)?.record.batch?.failures ?? 0;
      if (failures > 0)
        throw new ErrInvalidTransition(
          `the results of the batch ${JSON.stringify(id)} are not there any more, and they say which ${failures} of its lines failed`,
          {
            id,
            path: join(trays.outbox, resultsName(id)),
            phase: "retry",
            hint: "put them back, or enqueue those lines under a new id",
          },
        );
      throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has completed`, {
        id,
        phase: "retry",
        hint: "enqueue it under a new id",
      });
    }
    const names = [inboxName({ id }), inboxName({ id, isBatch: true })];
    if (
      names.some((name) => trays.storage.look(join(trays.inbox, name)) !== undefined) ||
      liveIds(trays, ["bad"]).has(foldId(id))
    )
      throw new ErrTaskExists(`task ${JSON.stringify(id)} waits or runs already`, {
        id,
        phase: "retry",
      });
    throw new ErrTaskNotFound(`no failed task ${JSON.stringify(id)}`, {
      id,
      path: failed,
      phase: "retry",
      hint: "see `mailchute ls --state-is failed`",
    });
  }
  const decoded = decodeRecord(bytes);
  if (decoded?.record.batch !== undefined) return retryBatch(trays, id, failed);
  const canRun =
    decoded?.taskText !== undefined || refusedFile(trays, decoded?.record) !== undefined;
  if (!canRun) {
    throw new ErrInvalidTransition(`the error record of ${JSON.stringify(id)} holds no task`, {
      id,
      path: failed,
      phase: "retry",
      hint: "drop a mended task file of this id into inbox/",
    });
  }
  if (trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined) {
    throw new ErrTaskExists(`a task ${JSON.stringify(id)} waits in the inbox`, {
      id,
      path: trays.inbox,
      phase: "retry",
    });
  }
  const marker = newMarker(id, "again");
  if (!moved(trays, failed, join(trays.processing, formatName(marker)))) {
    throw new ErrTaskNotFound(`the failed task ${JSON.stringify(id)} is gone`, {
      id,
      path: failed,
      phase: "retry",
    });
  }
  if (await finishRetry(trays, marker)) return;
  const aside = errorName(`${id}~${marker.token}`);
  throw new ErrTaskExists(`another task ${JSON.stringify(id)} was dropped just now`, {
    id,
    path: join(trays.failed, aside),
    phase: "retry",
    hint: `the dead letter is kept as failed/${aside}`,
  });
}

/** Tells the error record of this id from every other; undefined when there is none. */
export function deadLetterOf(trays: Trays, id: string): string | undefined {
  const { storage, outbox } = trays;
  const [completed, failed] = recordPaths(trays, id);
  // A batch that completed can be retried too, for its failed lines.
  const facts =
    storage.look(failed) ??
    (storage.look(join(outbox, resultsName(id))) === undefined
      ? undefined
      : storage.look(completed));
  return facts === undefined ? undefined : `${facts.ino}.${facts.mtimeMs}`;
}

/**
 * The rest of a retry, also after a crash in its middle.
 * @returns false when another task has taken the id meanwhile: then the record is back in `failed/`, under a name of its own
 */
export async function finishRetry(trays: Trays, marker: ProcessingName): Promise<boolean> {
  if (marker.isBatch === true) {
    await finishRetryBatch(trays, marker);
    return true;
  }
  const path = join(trays.processing, formatName(marker));
  const target = join(trays.inbox, inboxName(marker));
  const bytes = readIfThere(trays, path);
  if (bytes === undefined) return true;
  const decoded = decodeRecord(bytes);
  const refused = refusedFile(trays, decoded?.record);
  if (refused !== undefined) {
    const isBatch = refused.endsWith(".ndjson");
    const to = isBatch ? join(trays.inbox, inboxName({ id: marker.id, isBatch })) : target;
    const isThere = withTrays(trays, () => linked(trays, refused, to));
    // Its second name tells that an earlier try put it there.
    if (!isThere && (trays.storage.look(refused)?.nlink ?? 0) === 1)
      return keepAside(trays, marker);
    unlinkIfThere(trays, refused);
    if (trays.durability === "power") await trays.storage.syncDirs([trays.inbox]);
  } else if (decoded?.taskText !== undefined) {
    // A name of its own: of two who finish one retry at once, neither may publish what the other has not written yet.
    const staged = join(trays.tmp, `${marker.id}-${randomToken(10)}.again.tmp`);
    trays.storage.create(staged, Buffer.from(`${decoded.taskText}\n`, "utf8"));
    if (trays.durability === "power") await trays.storage.syncFiles([staged]);
    const { id } = marker;
    const text = decoded.taskText;
    const isSame = (file: string): boolean =>
      readIfThere(trays, file)?.toString("utf8").trim() === text;
    const published = withTrays(trays, () => publishTask(trays, staged, id, isSame));
    // Before the wait for the disk: whoever looks after the inbox refuses a file that keeps a second name.
    unlinkIfThere(trays, staged);
    const { lease } = decoded.record;
    if (published === "taken" && !isKnown(trays, id, text, lease)) return keepAside(trays, marker);
    if (trays.durability === "power") await trays.storage.syncDirs([trays.inbox]);
  } else if (decoded === undefined || !isRefusalOf(decoded.record)) {
    // Not a record we can read: give it back as it was.
    moved(trays, path, join(trays.failed, errorName(`${marker.id}~${marker.token}`)));
    return true;
  }
  dropTwin(trays, path, decoded?.record);
  // The record goes last: until here a crash finds it and comes again. A refused file that is gone from failed/ is in the
  // inbox already, or further.
  unlinkIfThere(trays, path);
  return true;
}

/** Of two who filed one refusal at once, each may have linked its reason: under the id, and under the name of the file. */
function dropTwin(trays: Trays, record: string, facts: object | undefined): void {
  const { file } = (facts ?? {}) as { file?: unknown };
  const [, stem] =
    /^failed\/([^/]+)\.(?:nd)?json$/.exec(typeof file === "string" ? file : "") ?? [];
  if (stem === undefined) return;
  const twin = join(trays.failed, errorName(stem));
  if (trays.storage.look(twin)?.ino === trays.storage.look(record)?.ino) unlinkIfThere(trays, twin);
}

/** The bytes of a file that was refused unrun, if they still lie where its record says. */
function refusedFile(trays: Trays, record: object | undefined): string | undefined {
  const file = (record as { file?: unknown } | undefined)?.file;
  if (typeof file !== "string" || !/^failed\/[^/]+\.(?:nd)?json$/.test(file)) return undefined;
  const path = join(trays.dir, file);
  return trays.storage.look(path)?.kind === "file" ? path : undefined;
}

function isRefusalOf(record: object): boolean {
  return typeof (record as { file?: unknown }).file === "string";
}

/** Another task of this id was dropped meanwhile: ours stays a dead letter, under a name of its own. */
function keepAside(trays: Trays, marker: ProcessingName): false {
  const path = join(trays.processing, formatName(marker));
  moved(trays, path, join(trays.failed, errorName(`${marker.id}~${marker.token}`)));
  return false;
}

/**
 * True for a task that was accepted from the inbox: an earlier try of a retry.
 * @param lease of the record that is retried: the marker it was settled with may still stand, and is no later run
 */
function isKnown(trays: Trays, id: string, text: string, lease: string): boolean {
  return findTaskText(trays, id, (live) => live.submission !== submissionOf(lease)) === text;
}
