/**
 * The drop folder, through which a run sends tasks and requests: `drops/<id>@<lease>/`, given to its program as `MAILCHUTE_DROP`.
 * The worker checks each dropped task outside the sandbox, sets its sender from the lease, submits it, and then removes the file.
 * After a crash in between the task is submitted again, which changes nothing while the task or its record exists. The next
 * worker takes the drops of a dead one. Files with other endings are requests, which a part takes in the same way.
 *
 * When a run ends, its folder is first renamed to `drops/.<id>@<lease>`. A program that outlives its run then finds no folder,
 * and its drops fail. Files that it dropped before are still taken.
 */
import fs from "node:fs";
import { basename, join } from "node:path";
import { JsonFault } from "../codec/json.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { Apart } from "../core/apart.ts";
import { ErrInvalidTask, MailchuteError, messageOf, systemCode } from "../core/errors.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { isId, runOfLease } from "../core/names.ts";
import { RUN_DIR_DEPTH, type StateTree } from "../core/state-tree.ts";
import { underLock } from "../host/file-lock.ts";
import { judgeOwner, parseOwner } from "../host/identity.ts";
import { listDir } from "../host/list-dir.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { readRegular } from "../host/regular-file.ts";
import { replaceDocument } from "../host/replace-document.ts";
import { systemClock } from "../host/system-clock.ts";
import { Alerts } from "../journal/alerts.ts";
import { submit } from "../mailbox/submit/submit.ts";
import type { RequestPlace, RequestTaker, RunRequest } from "./request-taker.ts";

/** The time between two looks into the folder of a running attempt (ms). */
const LOOK_MS = 200;
/** The first character of a folder whose run has ended. No id begins with it. */
const ENDED = ".";
/** Errors of `readRegular` that another try does not change. */
const UNREADABLE: ReadonlySet<string> = new Set(["EINVAL", "EFBIG", "EACCES", "EPERM"]);
/** Folders of ended runs whose files this process is taking now. */
const beingTaken = new Set<string>();

export interface DropPlace extends RequestPlace {
  readonly requests?: readonly RequestTaker[];
}

/** The path of the answer to a request: in the run's directory, where a program in a sandbox cannot write. */
export const answerPathOf = (runDir: string, id: string): string =>
  join(runDir, "answers", `${id}.json`);

const dropsDir = ({ dir }: Pick<StateTree, "dir">): string => join(dir, "drops");

export class Drop {
  private timer: NodeJS.Timeout | undefined;
  private taking: Promise<void> = Promise.resolve();
  private readonly files: Apart;

  constructor(
    private readonly place: DropPlace,
    private readonly dir: string,
  ) {
    this.files = filesApart(place);
  }

  /** Makes the folder, and looks into it until `close`. If the disk refuses, the run goes on without a folder, and its drops fail. */
  open(): void {
    try {
      makeDirs(this.dir, 2);
    } catch {
      return;
    }
    this.timer = setInterval(() => this.take(false), LOOK_MS);
  }

  /** Call it when the run has ended: takes the remaining files. Files that the disk refuses stay for a later look. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.taking;
    await takeLast(this.place, this.dir);
  }

  private take(isLast: boolean): void {
    this.taking = this.taking.then(() => takeAll(this.place, this.dir, isLast, this.files));
  }
}

/** Takes the drops that runs of dead workers left, and those that the disk refused when runs of this process ended. */
export async function takeLeftDrops(place: DropPlace): Promise<void> {
  const dirs = dropsDir(place.tree);
  const left = listDir(dirs).filter((name) => judgeOwner(ownerOf(name)) === "dead" || isOurs(name));
  if (left.length === 0) return;
  await underLock(join(dirs, ".lock"), async () => {
    for (const name of left) await takeLast(place, join(dirs, name));
  });
}

/** True for the folder of an ended run of this process. */
function isOurs(folder: string): boolean {
  return folder.startsWith(ENDED) && parseOwner(ownerOf(folder))?.pid === process.pid;
}

/** Takes the last files of a folder. Never rejects. Afterwards no program can leave anything in it. */
async function takeLast(place: DropPlace, dir: string): Promise<void> {
  const ended = endedOf(dir);
  // The end of a run and `takeLeftDrops` may come at the same time.
  if (beingTaken.has(ended)) return;
  beingTaken.add(ended);
  try {
    if (ended !== dir) fs.renameSync(dir, ended);
    await takeAll(place, ended, true, filesApart(place));
    removeEmpty(ended);
  } catch {
    // The folder was never made, or the disk refuses: a later look tries again.
  } finally {
    beingTaken.delete(ended);
  }
}

function endedOf(dir: string): string {
  const name = basename(dir);
  return name.startsWith(ENDED) ? dir : join(dir, "..", `${ENDED}${name}`);
}

/** Never rejects. @param isLast no program writes into the folder any more, so an incomplete file stays incomplete */
async function takeAll(
  place: DropPlace,
  dir: string,
  isLast: boolean,
  files: Apart,
): Promise<void> {
  await files.each(
    listDir(dir),
    (name) => name,
    (name) => takeFile(place, join(dir, name), isLast),
  );
}

/** @throws what another look may mend: the disk refuses */
async function takeFile(place: DropPlace, path: string, isLast: boolean): Promise<void> {
  const taker = place.requests?.find(({ ending }) => path.endsWith(ending));
  // A file with another ending is still being written.
  if (taker === undefined && !path.endsWith(".json")) {
    if (isLast) fs.rmSync(path, { recursive: true, force: true });
    return;
  }
  try {
    if (taker === undefined) await takeTask(place, path);
    else await takeRequest(place, path, taker);
    fs.rmSync(path, { force: true });
  } catch (error) {
    if (systemCode(error) === "ErrIo" || !(error instanceof MailchuteError)) throw error;
    if (isIncomplete(error) && !isLast) return;
    refuse(place, path, error);
  }
}

/** The files of one folder: one that cannot be taken now holds up no other. */
function filesApart({ tree }: DropPlace): Apart {
  return new Apart({
    what: "the dropped file",
    nowMs: () => performance.now(),
    tell: (key, message) => {
      const alerts = new Alerts(tree.alerts, systemClock, () => {});
      alerts.report(key, message);
      alerts.close();
    },
  });
}

/** True if the file may be only half written. */
function isIncomplete(error: MailchuteError): boolean {
  return error instanceof ErrInvalidTask || error.cause instanceof JsonFault;
}

async function takeTask({ trays }: DropPlace, path: string): Promise<void> {
  const id = basename(path, ".json");
  const bytes = readFile(path, id);
  const { task } = decodeTask(bytes, id, path);
  if (task["sender"] !== undefined)
    throw new ErrInvalidTask("it has the field `sender`, which only mailchute sets", {
      id,
      path,
      phase: "drop",
      hint: "leave the field out",
    });
  await submit(trays, { id, bytes: withSender(bytes, senderOf(path)) });
}

/** The answer is written before the caller removes the request: after a crash in between, the request is carried out again. */
async function takeRequest(place: DropPlace, path: string, taker: RequestTaker): Promise<void> {
  const id = basename(path, taker.ending);
  const sender = { taskId: senderOf(path), lease: leaseOf(path), runDir: runDirOf(place, path) };
  const request = (): RunRequest => ({ id, bytes: readFile(path, id), path, sender });
  try {
    if (!isId(id)) throw new ErrInvalidTask("its name is no id", { id, path, phase: "drop" });
    answer(sender.runDir, id, await taker.take(place, request()));
  } catch (error) {
    if (isId(id) && error instanceof MailchuteError) {
      const { code, hint } = error;
      answer(sender.runDir, id, { error: { code, message: messageOf(error), hint } });
    }
    throw error;
  }
}

function answer(runDir: string, id: string, text: object): void {
  const path = answerPathOf(runDir, id);
  makeDirs(join(path, ".."), RUN_DIR_DEPTH + 1);
  replaceDocument(path, text);
}

/** @throws ErrInvalidTask, a system error */
function readFile(path: string, id: string): Buffer {
  try {
    return readRegular(path, { bytesMax: TASK_BYTES_MAX });
  } catch (error) {
    if (!UNREADABLE.has(systemCode(error))) throw error;
    const reason = `it is no file of a task, or too large: ${messageOf(error)}`;
    throw new ErrInvalidTask(reason, { id, path, phase: "drop", cause: error });
  }
}

/** Inserts the sender into the text, so that numbers keep the digits that were typed. */
function withSender(bytes: Buffer, sender: string): Buffer {
  const at = bytes.indexOf("{") + 1;
  const field = Buffer.from(`"sender":${JSON.stringify(sender)},`, "utf8");
  return Buffer.concat([bytes.subarray(0, at), field, bytes.subarray(at)]);
}

/** Keeps a refused file in the run's directory, and tells a person why. */
function refuse(place: DropPlace, path: string, error: MailchuteError): void {
  const { tree } = place;
  const sender = senderOf(path);
  const kept = join(runDirOf(place, path), "refused");
  try {
    makeDirs(kept, RUN_DIR_DEPTH + 1);
    fs.renameSync(path, join(kept, basename(path)));
  } catch {
    // The file stays where it is. The next look refuses it again.
    return;
  }
  const alerts = new Alerts(tree.alerts, systemClock, () => {});
  const what = `${basename(path)}, which a run of ${sender} dropped, is refused`;
  alerts.raise("drop_refused", `${what}: ${error.code}: ${messageOf(error)}; it is in ${kept}`);
  alerts.close();
}

function senderOf(path: string): string {
  const folder = basename(join(path, ".."));
  return folder.slice(folder.startsWith(ENDED) ? ENDED.length : 0, folder.lastIndexOf("@"));
}

function leaseOf(path: string): string {
  const folder = basename(join(path, ".."));
  return folder.slice(folder.lastIndexOf("@") + 1);
}

function runDirOf({ tree }: DropPlace, path: string): string {
  return join(tree.runs, runOfLease(senderOf(path), leaseOf(path)));
}

/** The owner in `<id>@<submission>.<attempt>.<owner>`. */
function ownerOf(folder: string): string {
  const lease = folder.slice(folder.lastIndexOf("@") + 1);
  return lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
}

function removeEmpty(dir: string): void {
  try {
    fs.rmdirSync(dir);
  } catch {
    // Something is left in it, or it was never made.
  }
}
