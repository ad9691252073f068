/** Submit: creates a new file in `inbox/`. It is published by link, so it can never replace another file. */
import { decodeTask } from "../../codec/task-codec.ts";
import { ErrInvalidTask, ErrIo, ErrTaskExists, messageOf, systemCode } from "../../core/errors.ts";
import { TASK_BYTES_MAX } from "../../core/limits.ts";
import { errorName, explainBadId, foldId, resultName } from "../../core/names.ts";
import { randomToken } from "../files/random.ts";
import { pathIn, type Trays, withTrays } from "../files/trays.ts";
import { findLive, liveIds } from "../find/locate.ts";
import { SettledNames } from "../find/settled-names.ts";
import { isRefusal } from "../find/settled-record.ts";
import { asidePath, takeAside } from "./aside.ts";
import { findTaskText, finishAside, publishTask } from "./duplicates.ts";

export interface Submission {
  id: string;
  bytes: Buffer;
}

export type SubmitOutcome =
  | { id: string; outcome: "submitted" }
  /** The same task is there already: nothing to do. */
  | { id: string; outcome: "unchanged" }
  | { id: string; outcome: "refused"; error: ErrTaskExists | ErrInvalidTask | ErrIo };

interface Staged extends Submission {
  index: number;
  path: string;
}

/**
 * Submits a group with one durability barrier for all. Resolves when every outcome is final: tasks that are `submitted` or
 * `unchanged` are as safe as the mailbox's durability allows. Never throws for the failure of a single task.
 * @param settled a caller with many groups passes the same one each time
 */
export async function submitAll(
  trays: Trays,
  submissions: readonly Submission[],
  settled: SettledNames = new SettledNames(trays),
): Promise<SubmitOutcome[]> {
  const outcomes = new Map<number, SubmitOutcome>();
  const staged: Staged[] = [];
  const live = liveIds(trays);
  settled.refresh(true);
  const inGroup = new Map<string, string>();
  const token = randomToken(10);
  for (const [index, submission] of submissions.entries()) {
    const { id, bytes } = submission;
    const outcome =
      refuse(submission) ??
      clash(trays, submission, live, settled) ??
      clashInGroup(submission, inGroup);
    if (outcome !== undefined) {
      outcomes.set(index, outcome);
      continue;
    }
    const path = pathIn(trays.tmp, `${id}-${token}${index}.json.tmp`);
    try {
      withTrays(trays, () => trays.storage.create(path, bytes));
      staged.push({ id, bytes, index, path });
    } catch (error) {
      outcomes.set(index, failed(error, submission.id, path, "write the task"));
    }
  }
  const last = staged.at(-1);
  if (last !== undefined) settled.noteNew(last.path);
  if (await isStagingDurable(trays, staged, outcomes)) {
    for (const s of staged) outcomes.set(s.index, publish(trays, s));
    // Another process may have moved a task of the same id out of the inbox between our look and our link. A retry or refusal in
    // progress no longer counts as using the id: the file that is now in the inbox is the task itself.
    const after = staged.length > 0 ? liveIds(trays, ["again", "bad"]) : live;
    settled.refresh(false);
    for (const s of staged) {
      const { outcome } = outcomes.get(s.index) ?? {};
      if (outcome === "submitted") {
        const again = clash(trays, s, after, settled, true);
        // A second copy of the same task stays: a retry of the first one may rely on it. The supervisor drops it.
        if (again?.outcome === "refused" && withdraw(trays, s)) outcomes.set(s.index, again);
      } else if (outcome === "unchanged") {
        // The sender of that file may be about to withdraw it for the same reason.
        const again = clash(trays, s, after, settled);
        if (again !== undefined) outcomes.set(s.index, again);
      }
    }
  }
  for (const { path } of staged) drop(trays, path);
  await makeNamesDurable(trays, submissions, outcomes);
  return submissions.map(
    ({ id }, index) =>
      outcomes.get(index) ?? failed(new Error("no outcome"), id, trays.inbox, "submit"),
  );
}

/** Submits one task. @throws ErrTaskExists, ErrInvalidTask, ErrIo */
export async function submit(
  trays: Trays,
  submission: Submission,
): Promise<"submitted" | "unchanged"> {
  const [outcome] = await submitAll(trays, [submission]);
  if (outcome === undefined) throw new Error("submitAll answers for each submission");
  if (outcome.outcome === "refused") throw outcome.error;
  return outcome.outcome;
}

/**
 * With `power`, makes the staged files durable. A crash before that leaves only staged files: nothing was acknowledged, and the
 * sweep removes them.
 */
async function isStagingDurable(
  trays: Trays,
  staged: readonly Staged[],
  outcomes: Map<number, SubmitOutcome>,
): Promise<boolean> {
  if (trays.durability !== "power" || staged.length === 0) return true;
  try {
    await trays.storage.syncFiles(staged.map((s) => s.path));
    return true;
  } catch (error) {
    for (const s of staged)
      outcomes.set(s.index, failed(error, s.id, s.path, "make the task durable"));
    return false;
  }
}

/** Makes the names durable, also of a task that was there already: a resend is acknowledged too, and must be as safe. */
async function makeNamesDurable(
  trays: Trays,
  submissions: readonly Submission[],
  outcomes: Map<number, SubmitOutcome>,
): Promise<void> {
  const isAcknowledged = [...outcomes.values()].some((o) => o.outcome !== "refused");
  if (trays.durability !== "power" || !isAcknowledged) return;
  try {
    await trays.storage.syncDirs([trays.inbox]);
  } catch (error) {
    for (const [index, { id }] of submissions.entries()) {
      if (outcomes.get(index)?.outcome === "refused") continue;
      outcomes.set(
        index,
        failed(error, id, trays.inbox, "make the task durable (it may still run)"),
      );
    }
  }
}

function publish(trays: Trays, { id, path, bytes }: Staged): SubmitOutcome {
  const target = pathIn(trays.inbox, `${id}.json`);
  try {
    const published = withTrays(trays, () =>
      publishTask(trays, path, id, (file) => hasBytes(trays, file, bytes)),
    );
    if (published === "taken")
      return { id, outcome: "refused", error: exists(id, target, "waits in the inbox") };
    return { id, outcome: published === "published" ? "submitted" : "unchanged" };
  } catch (error) {
    return failed(error, id, target, "publish the task");
  }
}

/** Why this submission is refused, whatever the mailbox holds; undefined when it is valid. */
export function refuse({ id, bytes }: Submission): SubmitOutcome | undefined {
  const badId = explainBadId(id);
  const reason =
    badId !== undefined
      ? `bad id ${JSON.stringify(id.slice(0, 120))}: ${badId}`
      : bytes.length > TASK_BYTES_MAX
        ? `the task has ${bytes.length} bytes, more than the limit of ${TASK_BYTES_MAX}`
        : undefined;
  if (reason === undefined) return undefined;
  const hint =
    badId === undefined
      ? "put large data into a file and name it in the task"
      : "choose another id, or leave it out to get a fresh one";
  return {
    id,
    outcome: "refused",
    error: new ErrInvalidTask(reason, { id, phase: "enqueue", hint }),
  };
}

/** Finds ids that differ only in case. Exactly the same id is allowed: its bytes are compared in the inbox. */
function clashInGroup({ id }: Submission, seen: Map<string, string>): SubmitOutcome | undefined {
  const first = seen.get(foldId(id));
  if (first !== undefined && first !== id)
    return {
      id,
      outcome: "refused",
      error: exists(id, "", `was submitted just before as ${first}`),
    };
  seen.set(foldId(id), id);
  return undefined;
}

/**
 * Says where this id is already in use, outside the inbox.
 * @param isPublished our own file is, or was, in the inbox: the task with this id may be ours
 */
export function clash(
  trays: Trays,
  { id, bytes }: Submission,
  live: ReadonlySet<string>,
  settled: SettledNames,
  isPublished = false,
): SubmitOutcome | undefined {
  const error =
    live.has(foldId(id)) && !isAsideOnly(trays, id, bytes)
      ? exists(id, trays.processing, "is being worked on")
      : settled.has("outbox", resultName(id))
        ? exists(id, pathIn(trays.outbox, resultName(id)), "has a result already")
        : settled.has("failed", errorName(id)) &&
            !isRefusal(trays, pathIn(trays.failed, errorName(id)))
          ? exists(id, pathIn(trays.failed, errorName(id)), "has failed already")
          : undefined;
  if (error === undefined) return undefined;
  if (isPublished && trays.storage.look(pathIn(trays.inbox, `${id}.json`)) === undefined)
    return undefined;
  return isSameTask(trays, id, bytes)
    ? { id, outcome: "unchanged" }
    : { id, outcome: "refused", error };
}

/** Whether every file of this id in `processing/` is this same task, taken aside for a moment by another sender. */
function isAsideOnly(trays: Trays, id: string, bytes: Buffer): boolean {
  return findLive(trays, id).every(
    ({ name, path }) => name?.stage === "bad" && hasBytes(trays, path, bytes),
  );
}

/** Whether this is a resend whose acknowledgement was lost: the task was accepted or settled since. */
function isSameTask(trays: Trays, id: string, bytes: Buffer): boolean {
  try {
    return decodeTask(bytes, id).text === findTaskText(trays, id);
  } catch {
    return false;
  }
}

export function exists(id: string, path: string, where: string): ErrTaskExists {
  return new ErrTaskExists(`a task ${JSON.stringify(id)} ${where}`, {
    id,
    ...(path === "" ? {} : { path }),
    phase: "enqueue",
    hint: "choose another id, or leave it out to get a fresh one",
  });
}

/** Takes our own link back. False when another process moved the file already: that process then judges it. */
function withdraw(trays: Trays, { id, path }: Staged): boolean {
  const ours = trays.storage.look(path);
  const theirs = trays.storage.look(pathIn(trays.inbox, `${id}.json`));
  if (ours === undefined || theirs === undefined || ours.ino !== theirs.ino) return false;
  try {
    const marker = takeAside(trays, { id });
    if (marker === undefined) return false;
    const aside = asidePath(trays, marker);
    const taken = trays.storage.look(aside);
    if (taken?.ino !== ours.ino || taken.nlink === 1) {
      // Another sender's file was there by then; or our file has lost its staged name, and others rely on it.
      finishAside(trays, marker);
      return false;
    }
    // The file is gone if this process was stopped for so long that recovery has put it back.
    trays.storage.unlink(aside);
    return true;
  } catch {
    return false;
  }
}

function hasBytes(trays: Trays, path: string, bytes: Buffer): boolean {
  try {
    return trays.storage.read(path, TASK_BYTES_MAX).bytes?.equals(bytes) === true;
  } catch {
    return false;
  }
}

function drop(trays: Trays, path: string): void {
  try {
    trays.storage.unlink(path);
  } catch {
    // A staged file that is left here is later removed by age.
  }
}

function failed(error: unknown, id: string, path: string, what: string): SubmitOutcome {
  const code = systemCode(error);
  const hint =
    code === "ENOSPC" || code === "EDQUOT"
      ? "make room on the disk and try again; nothing was lost"
      : "check the directory's rights and the disk; nothing was lost";
  const text = `cannot ${what} (${code || "error"}): ${messageOf(error)}`;
  return { id, outcome: "refused", error: new ErrIo(text, { id, path, cause: error, hint }) };
}
