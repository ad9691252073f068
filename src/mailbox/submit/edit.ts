/**
 * Edit: replaces the text of a task that waits in the inbox. The editor claims the task, replaces the claimed file by one rename,
 * and puts the task back. So an edit and a start cannot happen at once: only one of them gets the name. After a crash the task is
 * put back with its old or its new text.
 */
import { createHash } from "node:crypto";
import { decodeTask } from "../../codec/task-codec.ts";
import {
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrTaskNotFound,
  messageOf,
} from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import type { Task } from "../../core/task.ts";
import { claimFromInbox, readBytes } from "../claim/claim.ts";
import { requeue } from "../claim/requeue.ts";
import { randomToken } from "../files/random.ts";
import { unlinkIfThere } from "../files/steps.ts";
import { pathIn, type Trays, withTrays } from "../files/trays.ts";
import { findClaim, findWaiting } from "../find/locate.ts";
import { hasSettled, readSettled } from "../find/settled-record.ts";

/** A digest that identifies one text of a task. */
export function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export interface Edit {
  id: string;
  /** The whole new text. */
  bytes: Buffer;
  /** `digestOf` the text before the edit. */
  was: string;
}

/** A new text of the task, which was checked and written to the disk. */
export interface StagedEdit extends Edit {
  path: string;
}

/**
 * Checks the new text and writes it beside the inbox.
 * @throws ErrInvalidTask, or a system error
 */
export async function stageEdit(trays: Trays, edit: Edit): Promise<StagedEdit> {
  const { id, bytes } = edit;
  if (bytes.length > TASK_BYTES_MAX)
    throw new ErrInvalidTask(`the task has ${bytes.length} bytes, the limit is ${TASK_BYTES_MAX}`, {
      id,
    });
  decodeTask(bytes, id);
  const path = pathIn(trays.tmp, `${id}-${randomToken(10)}.edit.json.tmp`);
  withTrays(trays, () => trays.storage.create(path, bytes));
  if (trays.durability === "power") await trays.storage.syncFiles([path]);
  return { ...edit, path };
}

/**
 * Replaces the text in one synchronous call.
 * @param owner of the claim: see `editingSequence`
 * @returns false when the task has the new text already
 * @throws ErrInvalidTransition (it has started, or was changed since), ErrTaskNotFound, ErrInvalidTask
 */
export function applyEdit(trays: Trays, staged: StagedEdit, owner: string): boolean {
  const { id, bytes, was, path } = staged;
  try {
    const claim = claimFromInbox(trays, id, 1, owner);
    if (claim === undefined) throw whyNot(trays, id);
    let isNew = false;
    try {
      const before = readBytes(trays, claim);
      isNew = !before.equals(bytes);
      if (isNew) {
        if (digestOf(before) !== was)
          throw new ErrInvalidTransition(`the task ${id} was changed in between`, {
            id,
            phase: "edit",
            hint: "look at it and edit it again",
          });
        keepWhatStays(decodeTask(before, id).task, decodeTask(bytes, id).task);
        trays.storage.touch(path, trays.storage.look(claim.path)?.mtimeMs ?? trays.clock.wallMs());
        // The commit. A crash before it leaves the old text under the claim, a crash after it the new one.
        trays.storage.rename(path, claim.path);
      }
    } finally {
      requeue(trays, claim);
    }
    return isNew;
  } finally {
    unlinkIfThere(trays, path);
  }
}

/** @throws ErrInvalidTask */
function keepWhatStays(before: Task, after: Task): void {
  if (before.created_at !== after.created_at)
    throw new ErrInvalidTask("created_at cannot be changed", { id: before.id, phase: "edit" });
}

/** Why no task of this id can be changed. */
export function whyNot(trays: Trays, id: string): ErrInvalidTransition | ErrTaskNotFound {
  const details = { id, phase: "edit" };
  if (findWaiting(trays, id)?.isBatch === true)
    return new ErrInvalidTransition(`${id} is a batch, which cannot be changed`, details);
  const claim = findClaim(trays, id);
  if (claim !== undefined) {
    const isWaiting = claim.name.stage !== "w";
    return new ErrInvalidTransition(
      `the task ${id} ${isWaiting ? "is accepted, and starts or waits for its next run" : "has started"}`,
      { ...details, hint: `to take it back first: mailchute cancel ${id} --requeue` },
    );
  }
  if (hasSettled(trays, id)) {
    const hint =
      readSettled(trays, id)?.record.batch !== undefined
        ? `mend the lines that failed in ${id}~*_batch.ndjson beside its record, then: mailchute retry ${id}`
        : `to run it once more, changed: mailchute enqueue --like ${id} --edit`;
    return new ErrInvalidTransition(`the task ${id} has settled`, { ...details, hint });
  }
  return new ErrTaskNotFound(`no task ${JSON.stringify(id)} waits`, {
    ...details,
    hint: "see `mailchute ls`",
  });
}

/** The text of a task that waits in the inbox. @throws ErrInvalidTransition, ErrTaskNotFound */
export function readWaiting(trays: Trays, id: string): Buffer {
  const place = findWaiting(trays, id);
  if (place === undefined || place.isBatch === true) throw whyNot(trays, id);
  try {
    const { bytes } = trays.storage.read(place.path, TASK_BYTES_MAX);
    if (bytes !== undefined) return bytes;
  } catch (error) {
    if (trays.storage.look(place.path) !== undefined)
      throw new ErrInvalidTask(`the task cannot be read: ${messageOf(error)}`, { id });
  }
  throw whyNot(trays, id);
}
