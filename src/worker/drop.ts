/**
 * The folder through which a run speaks: `drops/<id>@<lease>/`, `MAILCHUTE_DROP` for its program. A task that is dropped there is
 * checked out here, where no sandbox is, gets its sender from the lease, and is submitted. The file goes after that. After a crash in
 * between the task is submitted once more, which changes nothing while the task or its record is there. The next worker takes what a
 * dead one left. Files with other endings are requests, which a part takes in the same way.
 *
 * The folder of a run that has ended is renamed first, to `drops/.<id>@<lease>`. A program that outlives its run finds no folder then, and
 * is told so; what it left before is in the folder, and is taken.
 */
import fs from "node:fs";
import { basename, join } from "node:path";
import { JsonFault } from "../codec/json.ts";
import { decodeTask } from "../codec/task-codec.ts";
import { ErrInvalidTask, MailchuteError, messageOf, systemCode } from "../core/errors.ts";
import { TASK_BYTES_MAX } from "../core/limits.ts";
import { isId, runOfLease } from "../core/names.ts";
import { RUN_DIR_DEPTH, type StateTree } from "../core/state-tree.ts";
import { replaceDocument } from "../host/documents.ts";
import { lockFile } from "../host/file-lock.ts";
import { judgeOwner, parseOwner } from "../host/identity.ts";
import { listDir } from "../host/list-dir.ts";
import { makeDirs } from "../host/make-dirs.ts";
import { systemClock } from "../host/system-clock.ts";
import { Alerts } from "../journal/alerts.ts";
import { submit } from "../mailbox/submit/submit.ts";
import type { RequestPlace, RequestTaker, RunRequest } from "./request-taker.ts";

/** Between two looks into the folder of a run that is on (ms). */
const LOOK_MS = 200;
/** What the name of a folder begins with when its run has ended. No id begins so. */
const ENDED = ".";
/** Folders of ended runs that this process takes now. */
const beingTaken = new Set<string>();

export interface DropPlace extends RequestPlace {
  readonly requests?: readonly RequestTaker[];
}

/** Where the answer to a request is put: in the folder of the run, into which a program in a sandbox cannot write. */
export const answerPathOf = (runDir: string, id: string): string =>
  join(runDir, "answers", `${id}.json`);

const dropsDir = ({ dir }: Pick<StateTree, "dir">): string => join(dir, "drops");

export class Drop {
  private readonly place: DropPlace;
  private readonly dir: string;
  private timer: NodeJS.Timeout | undefined;
  private taking: Promise<void> = Promise.resolve();

  constructor(place: DropPlace, dir: string) {
    this.place = place;
    this.dir = dir;
  }

  /** Makes the folder, and looks into it until `close`. Without the disk the run has no folder, and its program is told so. */
  open(): void {
    try {
      makeDirs(this.dir, 2);
    } catch {
      return;
    }
    this.timer = setInterval(() => this.take(false), LOOK_MS);
  }

  /** The run has ended: takes the rest. What the disk refuses stays for a later look. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.taking;
    await takeLast(this.place, this.dir);
  }

  private take(isLast: boolean): void {
    this.taking = this.taking.then(() => takeAll(this.place, this.dir, isLast));
  }
}

/** Takes what runs of dead workers left, and what the disk refused when runs of this one ended. */
export async function takeLeftDrops(place: DropPlace): Promise<void> {
  const dirs = dropsDir(place.tree);
  const left = listDir(dirs).filter((name) => judgeOwner(ownerOf(name)) === "dead" || isOurs(name));
  if (left.length === 0) return;
  const release = await lockFile(join(dirs, ".lock"));
  try {
    for (const name of left) await takeLast(place, join(dirs, name));
  } finally {
    await release?.();
  }
}

/** Whether it is the folder of a run of this process that has ended. */
function isOurs(folder: string): boolean {
  return folder.startsWith(ENDED) && parseOwner(ownerOf(folder))?.pid === process.pid;
}

/** Never rejects. After it no program can leave anything in this folder. */
async function takeLast(place: DropPlace, dir: string): Promise<void> {
  const ended = endedOf(dir);
  // The end of a run, and a look for what is left, at once.
  if (beingTaken.has(ended)) return;
  beingTaken.add(ended);
  try {
    if (ended !== dir) fs.renameSync(dir, ended);
    await takeAll(place, ended, true);
    removeEmpty(ended);
  } catch {
    // It was never made, or the disk refuses: a later look tries again.
  } finally {
    beingTaken.delete(ended);
  }
}

function endedOf(dir: string): string {
  const name = basename(dir);
  return name.startsWith(ENDED) ? dir : join(dir, "..", `${ENDED}${name}`);
}

/** Never rejects. @param isLast no program writes any more: what is no task now never becomes one */
async function takeAll(place: DropPlace, dir: string, isLast: boolean): Promise<void> {
  for (const name of listDir(dir)) {
    const path = join(dir, name);
    const taker = place.requests?.find(({ ending }) => name.endsWith(ending));
    // Another name is that of a file that is being written.
    if (taker === undefined && !name.endsWith(".json")) {
      if (isLast) fs.rmSync(path, { recursive: true, force: true });
      continue;
    }
    try {
      if (taker === undefined) await takeTask(place, path);
      else await takeRequest(place, path, taker);
      fs.rmSync(path, { force: true });
    } catch (error) {
      if (systemCode(error) === "ErrIo" || !(error instanceof MailchuteError)) continue;
      if (isIncomplete(error) && !isLast) continue;
      refuse(place, path, error);
    }
  }
}

/** It may be a file whose end is not written yet. */
function isIncomplete(error: MailchuteError): boolean {
  return error instanceof ErrInvalidTask || error.cause instanceof JsonFault;
}

async function takeTask({ trays }: DropPlace, path: string): Promise<void> {
  const id = basename(path, ".json");
  const bytes = readFile(path, id);
  const { task } = decodeTask(bytes, id, path);
  if (task["sender"] !== undefined)
    throw new ErrInvalidTask("it names its sender, which mailchute does", {
      id,
      path,
      phase: "drop",
      hint: "leave the field `sender` out",
    });
  await submit(trays, { id, bytes: withSender(bytes, senderOf(path)) });
}

/** The answer is there before the file goes: after a crash in between, the request is carried out again. */
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
  const { isFile, size } = kindOf(path);
  if (!isFile || size > TASK_BYTES_MAX)
    throw new ErrInvalidTask("it is no file of a task, or too large", { id, path, phase: "drop" });
  return fs.readFileSync(path);
}

/** Its digits stay as they were typed: it is not written anew. */
function withSender(bytes: Buffer, sender: string): Buffer {
  const at = bytes.indexOf("{") + 1;
  const field = Buffer.from(`"sender":${JSON.stringify(sender)},`, "utf8");
  return Buffer.concat([bytes.subarray(0, at), field, bytes.subarray(at)]);
}

function kindOf(path: string): { isFile: boolean; size: number } {
  const stats = fs.lstatSync(path);
  return { isFile: stats.isFile(), size: stats.size };
}

/** What is refused is kept beside what the run has left, and a person is told why. */
function refuse(place: DropPlace, path: string, error: MailchuteError): void {
  const { tree } = place;
  const sender = senderOf(path);
  const kept = join(runDirOf(place, path), "refused");
  try {
    makeDirs(kept, RUN_DIR_DEPTH + 1);
    fs.renameSync(path, join(kept, basename(path)));
  } catch {
    // It stays where it is, and is refused again.
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
