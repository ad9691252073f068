/** Reads and writes messages between machines. A bad message is refused with a reason, and changes nothing. The id under which a message comes is not trusted: it must be the id that its content gives. */
import { JsonFault, scanObject } from "../../../codec/json.ts";
import { compileCheck } from "../../../codec/schema.ts";
import type { TSchema } from "../../../codec/typebox.ts";
import { OUTPUT_DEPTH_MAX } from "../../../core/limits.ts";
import { explainBadId } from "../../../core/names.ts";
import { type Dispatch, dispatchId, isTarget, isTree } from "./dispatch.ts";
import {
  BEAT_BYTES_MAX,
  BEAT_DISPATCHES_MAX,
  type Beat,
  type BeatEntry,
  BeatSchema,
  type Drain,
  DrainSchema,
  type Job,
  JobSchema,
  type LogAsk,
  LogAskSchema,
  type LogPart,
  LogPartSchema,
  type MachineReport,
  MESSAGE_BYTES_MAX,
  ReportSchema,
  type Result,
  ResultSchema,
  type Sent,
  VERSION,
} from "./messages.ts";

const OTHER_SENDER = "it names another machine than its sender";
/** The depth of a run's output in a message. */
const DEPTH_OF_OUTPUT = 2;

/** A bad message, with the reason. The message may hold secrets, so the reason quotes nothing of it. */
export class BadMessage extends Error {
  override readonly name = "BadMessage";
}

const jobForm = formOf(JobSchema, ["task"]);
const resultForm = formOf(ResultSchema, ["end"]);
const beatForm = formOf(BeatSchema);
const reportForm = formOf(ReportSchema);
const drainForm = formOf(DrainSchema);
const logAskForm = formOf(LogAskSchema);
const logPartForm = formOf(LogPartSchema);

type Message = Job | Result | Beat | MachineReport | Drain | LogAsk | LogPart;

/** @throws BadMessage when the message is larger than `MESSAGE_BYTES_MAX` */
export function encodeMessage(message: Message): Buffer {
  const bytes = Buffer.from(JSON.stringify({ version: VERSION, ...message }), "utf8");
  if (bytes.length > MESSAGE_BYTES_MAX) throw new BadMessage(explainSize(bytes.length));
  return bytes;
}

/** The heartbeats of a machine about one tree, each small enough for a message. */
export function beatsOf(machine: string, has: readonly BeatEntry[]): Beat[] {
  const beats: { machine: string; has: BeatEntry[] }[] = [];
  let bytes = 0;
  for (const entry of has) {
    const more = Buffer.byteLength(JSON.stringify(entry)) + 1;
    const last = beats.at(-1);
    if (
      last === undefined ||
      last.has.length === BEAT_DISPATCHES_MAX ||
      bytes + more > BEAT_BYTES_MAX
    ) {
      beats.push({ machine, has: [entry] });
      bytes = more;
    } else {
      last.has.push(entry);
      bytes += more;
    }
  }
  return beats;
}

/** @param id the id in the subject of the message. @throws BadMessage */
export function decodeJob(bytes: Buffer, id: string): Job {
  return checkHead(jobForm(bytes), id);
}

/**
 * @param id the id in the subject of the message
 * @param sender the machine and the target in the subject; the servers let only a machine of that target use it
 * @throws BadMessage
 */
export function decodeResult(
  bytes: Buffer,
  id: string,
  sender: Pick<Result, "target" | "machine">,
): Result {
  const result = checkHead(resultForm(bytes), id);
  if (result.machine !== sender.machine) throw new BadMessage(OTHER_SENDER);
  if (result.target !== sender.target)
    throw new BadMessage("it names another target than its sender");
  return result;
}

/** @param tree the tree that the heartbeat must be about. @param machine the sender. @throws BadMessage */
export function decodeBeat(bytes: Buffer, tree: string, machine: string): Beat {
  const beat = beatForm(bytes);
  if (beat.machine !== machine) throw new BadMessage(OTHER_SENDER);
  checkTarget(beat.machine, "machine");
  for (const { dispatch, target } of beat.has) {
    checkDispatch(dispatch, target);
    if (dispatch.tree !== tree) throw new BadMessage("it speaks of another tree");
  }
  return beat;
}

/** @param machine the sender. @throws BadMessage */
export function decodeReport(bytes: Buffer, machine: string): MachineReport {
  const report = reportForm(bytes);
  checkTarget(report.machine, "machine");
  for (const target of report.serves) checkTarget(target, "serves");
  if (report.machine !== machine) throw new BadMessage(OTHER_SENDER);
  return report;
}

/** @param tree the asking tree. It may ask only about its own tasks. @throws BadMessage */
export function decodeLogAsk(bytes: Buffer, tree: string): LogAsk {
  const ask = logAskForm(bytes);
  const { dispatch } = ask;
  checkTask(dispatch);
  if (dispatch.tree !== tree) throw new BadMessage("it asks about a task of another tree");
  return ask;
}

/** @throws BadMessage */
export function decodeLogPart(bytes: Buffer): LogPart {
  return logPartForm(bytes);
}

/** @throws BadMessage */
export function decodeDrain(bytes: Buffer): Drain {
  return drainForm(bytes);
}

/** Makes a reader of messages of one form. @param free members in which any keys are allowed */
function formOf<S extends TSchema>(
  schema: S,
  free: readonly string[] = [],
): (bytes: Buffer) => Sent<S> {
  const check = compileCheck(schema);
  const freeMembers = new Set(free);
  return (bytes) => {
    if (bytes.length > MESSAGE_BYTES_MAX) throw new BadMessage(explainSize(bytes.length));
    const value = parse(bytes, freeMembers);
    const { version, ...rest } = value;
    if (Number.isInteger(version) && version !== VERSION)
      throw new BadMessage(`it has version ${String(version)}, and this program knows ${VERSION}`);
    const fault = check(value);
    if (fault !== undefined) throw new BadMessage(fault.message);
    return rest as Sent<S>;
  };
}

function parse(bytes: Buffer, free: ReadonlySet<string>): Record<string, unknown> {
  try {
    return scanObject(bytes, free, OUTPUT_DEPTH_MAX + DEPTH_OF_OUTPUT).value;
  } catch (error) {
    if (error instanceof JsonFault) throw new BadMessage(error.message);
    throw error;
  }
}

function checkHead<T extends Job | Result>(message: T, id: string): T {
  checkDispatch(message.dispatch, message.target);
  if (dispatchId(message.dispatch) !== id)
    throw new BadMessage("it is about another dispatch than its name says");
  return message;
}

function checkDispatch(dispatch: Dispatch, target: string): void {
  checkTask(dispatch);
  checkTarget(target, "target");
}

function checkTask({ tree, task }: Dispatch): void {
  const fault = explainBadId(task);
  if (fault !== undefined) throw new BadMessage(`dispatch.task: ${fault}`);
  if (!isTree(tree)) throw new BadMessage("dispatch.tree is no name of a tree");
}

function checkTarget(text: string, member: string): void {
  if (!isTarget(text))
    throw new BadMessage(
      `${member}: expected up to 32 of a-z, 0-9 and -, beginning with a letter or digit`,
    );
}

function explainSize(size: number): string {
  return `it has ${size} bytes, and at most ${MESSAGE_BYTES_MAX} can travel`;
}
