/** Retry: puts a settled task back into the inbox. One rename takes its record out of its tray; recovery can finish from there. */
import { join, relative } from "node:path";
import { decodeRecord } from "../../codec/records.ts";
import type { Skip } from "../../core/dependencies.ts";
import { ErrInvalidTransition, ErrTaskExists, ErrTaskNotFound } from "../../core/errors.ts";
import {
  errorName,
  formatName,
  inboxName,
  type ProcessingName,
  resultsName,
} from "../../core/names.ts";
import { newMarker } from "../claim/claim.ts";
import { linked, moved, readWithFacts, unlinkIfThere } from "../files/steps.ts";
import type { FileFacts } from "../files/storage.ts";
import { type Trays, withTrays } from "../files/trays.ts";
import { duplicateIn, isFailed, skipIn } from "../find/failures.ts";
import { isInFlight, recordPaths } from "../find/locate.ts";
import { errorsBeside, readRecord } from "../find/settled-record.ts";
import { type PutBackOptions, putSkippedBack } from "./put-skipped-back.ts";
import { finishRetryBatch, retryBatch } from "./retry-batch.ts";
import {
  asideOf,
  dropSkipMarker,
  explainForeignRecord,
  keepAside,
  publishRetry,
  stageRetry,
  trayOf,
} from "./retry-steps.ts";

export interface RetryOptions extends PutBackOptions {
  /** Also retry a task that has completed; its result is removed. */
  isRerun?: boolean;
  /** Refuse to retry a task that did not run because another task has its key. */
  leavesDuplicates?: boolean;
}

/**
 * Runs a failed task again under its own id, from its first attempt. The tasks that were skipped because of it wait again.
 * @returns the ids of those tasks
 * @throws ErrTaskNotFound, ErrTaskExists (it already waits or runs again), ErrInvalidTransition (it cannot be run again)
 */
export async function retry(
  trays: Trays,
  id: string,
  options: RetryOptions = {},
): Promise<readonly string[]> {
  const reopened: string[] = [];
  const onReopened = (one: string): void => {
    reopened.push(one);
    options.onReopened?.(one);
  };
  await retryAny(trays, id, { ...options, onReopened });
  return reopened;
}

async function retryAny(trays: Trays, id: string, options: RetryOptions): Promise<void> {
  const { isRerun = false } = options;
  const [completed, plain] = recordPaths(trays, id);
  const isBeside = trays.storage.look(plain) === undefined && !hasMoreThanErrors(trays, id);
  const failed = isBeside ? (runnableBeside(trays, id) ?? plain) : plain;
  const found = readWithFacts(trays, failed);
  if (found?.bytes === undefined) {
    const result = isRerun ? readWithFacts(trays, completed) : undefined;
    const bytes = result?.bytes;
    if (bytes !== undefined && decodeRecord(bytes)?.record.batch === undefined)
      return retryRecord(trays, id, completed, bytes, result?.facts.uid ?? -1, options);
    if (trays.storage.look(completed) !== undefined) {
      if (trays.storage.look(join(trays.outbox, resultsName(id))) !== undefined)
        return retryBatch(trays, id, completed, options);
      const failures = readRecord(trays, completed)?.record.batch?.failures ?? 0;
      if (failures > 0)
        throw new ErrInvalidTransition(
          `the results of the batch ${JSON.stringify(id)} are gone, and only they say which ${failures} of its lines failed`,
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
        hint: `\`mailchute retry ${id} --completed\` runs it again, and its result goes; or enqueue it under a new id`,
      });
    }
    if (isInFlight(trays, id, ["bad"]))
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
  const record = decodeRecord(found.bytes)?.record;
  if (record?.batch !== undefined) return retryBatch(trays, id, failed, options);
  const skip = record === undefined ? undefined : skipIn(record);
  if (skip !== undefined && isFailed(trays, skip.cause)) throw wouldBeSkipped(id, failed, skip);
  const of = record === undefined ? undefined : duplicateIn(record);
  if (of !== undefined && options.leavesDuplicates === true)
    throw new ErrInvalidTransition(
      `the task ${JSON.stringify(id)} was not run, because ${of} has the same dedup_key`,
      { id, path: failed, phase: "retry", hint: `\`mailchute retry ${id}\` tries it again` },
    );
  return retryRecord(trays, id, failed, found.bytes, found.facts.uid, options);
}

/** @param path of the task's record @param bytes of the record @param uid of its owner */
async function retryRecord(
  trays: Trays,
  id: string,
  path: string,
  bytes: Buffer,
  uid: number,
  options: PutBackOptions,
): Promise<void> {
  const decoded = decodeRecord(bytes);
  const canRun =
    decoded?.taskText !== undefined || refusedFile(trays, decoded?.record) !== undefined;
  if (!canRun) {
    throw new ErrInvalidTransition(`the record of ${JSON.stringify(id)} holds no task`, {
      id,
      path,
      phase: "retry",
      hint: "drop a mended task file of this id into inbox/",
    });
  }
  const fault = explainForeignRecord(trays, uid);
  if (fault !== undefined) throw cannotBeTrusted(id, path, fault);
  if (trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined) {
    throw new ErrTaskExists(`a task ${JSON.stringify(id)} waits in the inbox`, {
      id,
      path: trays.inbox,
      phase: "retry",
    });
  }
  const marker = newMarker(trays.clock, id, "again");
  if (!moved(trays, path, join(trays.processing, formatName(marker)))) {
    throw new ErrTaskNotFound(`the record of the task ${JSON.stringify(id)} is gone`, {
      id,
      path,
      phase: "retry",
    });
  }
  const end = await finishRetry(trays, marker, options);
  if (end !== "taken" && end !== "foreign") return;
  const aside = asideOf(trays, marker, decoded?.record);
  if (end === "foreign") throw cannotBeTrusted(id, aside, "its file was replaced just now");
  throw new ErrTaskExists(`another task ${JSON.stringify(id)} was dropped just now`, {
    id,
    path: aside,
    phase: "retry",
    hint: `the record is kept as ${relative(trays.dir, aside)}`,
  });
}

function wouldBeSkipped(id: string, path: string, { cause, root }: Skip): ErrInvalidTransition {
  const through = root === cause ? "" : `, because ${root} has`;
  return new ErrInvalidTransition(
    `the task ${JSON.stringify(id)} was skipped, and ${cause}, on which it depends, has failed${through}`,
    { id, path, phase: "retry", hint: `\`mailchute retry ${root}\` puts both back` },
  );
}

function cannotBeTrusted(id: string, path: string, why: string): ErrInvalidTransition {
  return new ErrInvalidTransition(`the record of ${JSON.stringify(id)} is not used: ${why}`, {
    id,
    path,
    phase: "retry",
    hint: "give it to yourself with chown, or allow that uid in config.yaml (uids)",
  });
}

/** Whether a task of this id is in flight or has completed: then the caller does not mean an error record with a longer name. */
function hasMoreThanErrors(trays: Trays, id: string): boolean {
  const [completed] = recordPaths(trays, id);
  return trays.storage.look(completed) !== undefined || isInFlight(trays, id, ["bad"]);
}

/** The latest error record of this id with a longer name that holds a task, or whose refused file is still there. */
function runnableBeside(trays: Trays, id: string): string | undefined {
  return errorsBeside(trays, id).find(({ record, path }) => {
    if (record.status !== "failed" || record.batch !== undefined) return false;
    return (
      refusedFile(trays, record) !== undefined || readRecord(trays, path)?.taskText !== undefined
    );
  })?.path;
}

/** A text that differs for each error record of this id; undefined when there is no record. */
export function deadLetterOf(trays: Trays, id: string): string | undefined {
  const { storage, outbox } = trays;
  const [completed, failed] = recordPaths(trays, id);
  // A completed batch can be retried too, for its failed lines.
  const facts =
    storage.look(failed) ??
    lookBeside(trays, id) ??
    (storage.look(join(outbox, resultsName(id))) === undefined
      ? undefined
      : storage.look(completed));
  return facts === undefined ? undefined : `${facts.ino}.${facts.mtimeMs}`;
}

function lookBeside(trays: Trays, id: string): FileFacts | undefined {
  const path = hasMoreThanErrors(trays, id) ? undefined : runnableBeside(trays, id);
  return path === undefined ? undefined : trays.storage.look(path);
}

/**
 * Finishes a retry, also after a crash in its middle.
 * @returns `taken` when another task has this id now, `foreign` when the record's owner is not allowed: in both cases the record
 *   is back in its tray under a new name; `later` when recovery must try again
 */
export async function finishRetry(
  trays: Trays,
  marker: ProcessingName,
  options: PutBackOptions = {},
): Promise<"done" | "later" | "taken" | "foreign"> {
  if (marker.isBatch === true) return finishRetryBatch(trays, marker, options);
  const path = join(trays.processing, formatName(marker));
  const target = join(trays.inbox, inboxName(marker));
  const found = readWithFacts(trays, path);
  if (found?.bytes === undefined) return "done";
  const decoded = decodeRecord(found.bytes);
  const refused = refusedFile(trays, decoded?.record);
  if (refused !== undefined) {
    const isBatch = refused.endsWith(".ndjson");
    const to = isBatch ? join(trays.inbox, inboxName({ id: marker.id, isBatch })) : target;
    if (trays.durability === "power") await trays.storage.syncDirs([trays.failed]);
    const isThere = withTrays(trays, () => linked(trays, refused, to));
    // A second name shows that an earlier try put the file there.
    if (!isThere && (trays.storage.look(refused)?.nlink ?? 0) === 1)
      return keepAside(trays, marker, decoded?.record, "taken");
    if (trays.durability === "power") await trays.storage.syncDirs([trays.inbox]);
    unlinkIfThere(trays, refused);
    // If a power cut brought that name back, the file in the inbox would have two names and be refused.
    if (trays.durability === "power") await trays.storage.syncDirs([trays.failed]);
  } else if (decoded?.taskText !== undefined) {
    if (explainForeignRecord(trays, found.facts.uid) !== undefined)
      return keepAside(trays, marker, decoded?.record, "foreign");
    const { record } = decoded;
    if (record.status === "failed") await putSkippedBack(trays, marker, record, options);
    const staged = stageRetry(trays, marker, decoded.taskText);
    // A power cut must not bring the record back beside the task's new record.
    if (trays.durability === "power")
      await Promise.all([
        trays.storage.syncFiles([staged]),
        trays.storage.syncDirs([trayOf(trays, decoded.record)]),
      ]);
    const isPublished = publishRetry(trays, marker, staged, decoded);
    if (!isPublished) return keepAside(trays, marker, decoded?.record, "taken");
    if (trays.durability === "power") await trays.storage.syncDirs([trays.inbox]);
  } else if (decoded === undefined || !isRefusalOf(decoded.record)) {
    // The record cannot be read: put it back unchanged.
    moved(trays, path, join(trays.failed, errorName(`${marker.id}~${marker.token}`)));
    return "done";
  }
  dropTwin(trays, path, decoded?.record);
  if (decoded !== undefined) dropSkipMarker(trays, marker.id, decoded.record);
  // The record is removed last: until then recovery finds it after a crash and repeats this. A refused file that is no longer in
  // failed/ is already in the inbox, or further.
  unlinkIfThere(trays, path);
  return "done";
}

/** Removes a second link to this reason. Two processes that file one refusal at once may link it under the id and under the file's name. */
function dropTwin(trays: Trays, record: string, facts: object | undefined): void {
  const { file } = (facts ?? {}) as { file?: unknown };
  const [, stem] =
    /^failed\/([^/]+)\.(?:nd)?json$/.exec(typeof file === "string" ? file : "") ?? [];
  if (stem === undefined) return;
  const twin = join(trays.failed, errorName(stem));
  if (trays.storage.look(twin)?.ino === trays.storage.look(record)?.ino) unlinkIfThere(trays, twin);
}

/** The path of a file that was refused before it ran, if it is still where its record says. */
function refusedFile(trays: Trays, record: object | undefined): string | undefined {
  const file = (record as { file?: unknown } | undefined)?.file;
  if (typeof file !== "string" || !/^failed\/[^/]+\.(?:nd)?json$/.test(file)) return undefined;
  const path = join(trays.dir, file);
  return trays.storage.look(path)?.kind === "file" ? path : undefined;
}

function isRefusalOf(record: object): boolean {
  return typeof (record as { file?: unknown }).file === "string";
}
