/** Submits a batch: writes it to a staged file, then publishes it by link like a task. Needs the memory of one piece, even for gigabytes. */
import fs from "node:fs";
import { join } from "node:path";
import { ErrInvalidTask, ErrIo, ErrTaskExists, messageOf, systemCode } from "../../core/errors.ts";
import { errorName, explainBadId, inboxName, resultName, resultsName } from "../../core/names.ts";
import { openNew } from "../../host/regular-file.ts";
import { writeWhole } from "../files/node-storage.ts";
import { randomToken } from "../files/random.ts";
import { unlinkIfThere } from "../files/steps.ts";
import type { Trays } from "../files/trays.ts";
import { findInProcessing } from "../find/locate.ts";
import { isRefusal } from "../find/settled-record.ts";
import { isSameFile, keptBatchOf } from "./duplicates.ts";
import { exists } from "./submit.ts";

export interface SubmittedBatch {
  outcome: "submitted" | "unchanged";
  /** Lines that are not blank. Whether each is a valid task is checked when it runs. */
  lines: number;
  bytes: number;
}

const NEWLINE = 0x0a;
/** A file whose mtime is this much older than its change time (ms) was moved in as a whole: the supervisor does not wait for it to grow. */
const AGE_MS = 1000;

/**
 * Submits what `source` yields as the batch `id`. When it resolves, the batch is as safe as the mailbox's durability allows.
 * @throws ErrInvalidTask (bad id, too large, no line), ErrTaskExists, ErrIo; nothing of the batch is then left
 */
export async function submitBatch(
  trays: Trays,
  id: string,
  source: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<SubmittedBatch> {
  const badId = explainBadId(id);
  if (badId !== undefined)
    throw new ErrInvalidTask(`bad id ${JSON.stringify(id.slice(0, 120))}: ${badId}`, {
      id,
      phase: "enqueue",
    });
  const staged = join(trays.tmp, `${id}-${randomToken(10)}.ndjson.tmp`);
  const target = join(trays.inbox, inboxName({ id, isBatch: true }));
  try {
    const { lines, bytes } = await stageAll(staged, id, source, bytesMax);
    if (trays.durability === "power") await trays.storage.syncFiles([staged]);
    const outcome = publish(trays, id, staged, target);
    unlinkIfThere(trays, staged);
    if (trays.durability === "power") await trays.storage.syncDirs([trays.inbox]);
    return { outcome, lines, bytes };
  } catch (error) {
    fs.rmSync(staged, { force: true });
    if (error instanceof ErrInvalidTask || error instanceof ErrTaskExists) throw error;
    throw new ErrIo(`cannot submit the batch ${id}: ${messageOf(error)}`, {
      id,
      path: target,
      phase: "enqueue",
      cause: error,
      hint: "nothing of it was submitted; mend the cause and try again",
    });
  }
}

async function stageAll(
  staged: string,
  id: string,
  source: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<{ lines: number; bytes: number }> {
  const fd = openNew(staged);
  let lines = 0;
  let bytes = 0;
  let isBlank = true;
  try {
    for await (const piece of source) {
      bytes += piece.length;
      if (bytes > bytesMax)
        throw new ErrInvalidTask(
          `the batch has more than the limit of ${bytesMax} bytes (setting: batch_bytes_max)`,
          { id, phase: "enqueue", hint: "split it into several" },
        );
      for (let from = 0; from < piece.length; ) {
        const at = piece.indexOf(NEWLINE, from);
        const to = at === -1 ? piece.length : at;
        if (isBlank && !isSpace(piece, from, to)) {
          isBlank = false;
          lines++;
        }
        if (at === -1) break;
        isBlank = true;
        from = at + 1;
      }
      writeWhole(fd, piece);
    }
    // Use the clock of the file system, which also sets the change time of the file.
    const past = (fs.fstatSync(fd).mtimeMs - AGE_MS) / 1000;
    fs.futimesSync(fd, past, past);
  } finally {
    fs.closeSync(fd);
  }
  if (lines === 0)
    throw new ErrInvalidTask("the batch holds no line", {
      id,
      phase: "enqueue",
      hint: "write one JSON task a line",
    });
  return { lines, bytes };
}

function isSpace(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] ?? 0;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}

function publish(
  trays: Trays,
  id: string,
  staged: string,
  target: string,
): SubmittedBatch["outcome"] {
  const taken = whereTaken(trays, id);
  if (taken !== undefined) {
    if (isSameFile(staged, taken.path)) return "unchanged";
    throw exists(id, taken.path, taken.what);
  }
  try {
    trays.storage.link(staged, target);
    return "submitted";
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    if (isSameFile(staged, target)) return "unchanged";
    throw exists(id, target, "waits in the inbox");
  }
}

function whereTaken(trays: Trays, id: string): { path: string; what: string } | undefined {
  const { storage } = trays;
  const task = join(trays.inbox, inboxName({ id }));
  if (storage.look(task) !== undefined) return { path: task, what: "waits in the inbox" };
  const live = findInProcessing(trays, id);
  if (live !== undefined) return { path: live.path, what: "is being worked on" };
  for (const [dir, record] of [
    [trays.outbox, resultName(id)],
    [trays.failed, errorName(id)],
  ] as const) {
    const path = join(dir, record);
    if (storage.look(path) !== undefined && !isRefusal(trays, path)) {
      const what = dir === trays.outbox ? "has a result already" : "has failed already";
      const batch = keptBatchOf(trays, id, path);
      return { path: storage.look(batch) === undefined ? path : batch, what };
    }
    const results = join(dir, resultsName(id));
    if (storage.look(results) !== undefined)
      return { path: results, what: "still has a results file" };
  }
  return undefined;
}
