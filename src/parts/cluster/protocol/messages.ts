/**
 * Messages between machines: JSON, checked like a dropped file. A bad message is refused with a reason, and changes nothing. The id
 * under which a message comes is not trusted: it must be the id that its content gives.
 */
import { JsonFault, scanObject } from "../../../codec/json.ts";
import { FAILURE_KINDS } from "../../../codec/record-schemas.ts";
import { compileCheck } from "../../../codec/schema.ts";
import { type TSchema, Type } from "../../../codec/typebox.ts";
import type { WorkFacts } from "../../../core/landing.ts";
import { ID_CHARS_MAX, MAX_ATTEMPTS_MAX, OUTPUT_DEPTH_MAX } from "../../../core/limits.ts";
import { explainBadId } from "../../../core/names.ts";
import { DENIED_CHARS_MAX, DENIED_MAX, type RunUsage } from "../../../core/run-usage.ts";
import type { FailureKind } from "../../../core/task.ts";
import { type Dispatch, dispatchId, isTarget, isTree } from "./dispatch.ts";

/** Servers take messages of up to 1 MB by default, subject and headers included (bytes). */
export const MESSAGE_BYTES_MAX = 900_000;
/** A heartbeat has at most this many dispatches. A machine with more sends several heartbeats. */
export const BEAT_DISPATCHES_MAX = 1000;
/** A heartbeat has at most about this size (bytes). */
const BEAT_BYTES_MAX = MESSAGE_BYTES_MAX / 2;
/** Most bytes of a log in one message. */
export const LOG_BYTES_MAX = 128 * 1024;
/** Longest text of a run in a message (characters). */
export const SAID_CHARS_MAX = 200;
/** Most costs of one run. A run has several if it used several sessions, for example because it lost one. */
const COSTS_MAX = 8;
/** Longest name of a branch or a commit (characters). */
const REF_CHARS_MAX = 1024;
/** Longest name of a turn (characters). */
const TURN_CHARS_MAX = 200;
/** A machine serves at most this many targets. */
export const SERVES_MAX = 64;

/** Longest reason why a machine takes no tasks (characters). */
export const WHY_CHARS_MAX = 300;

const VERSION = 1;
const OTHER_SENDER = "it names another machine than its sender";
/** The depth of a run's output in a message. */
const DEPTH_OF_OUTPUT = 2;

/** Asks for one run of a task. */
export interface Job {
  dispatch: Dispatch;
  /** The machines that may run it: see `isTarget`. */
  target: string;
  /** The fields of the task that are sent: see `sentFields`. */
  task: Record<string, unknown>;
}

/** The resources that a run has used, as far as its machine knows. */
export interface EndUsage extends RunUsage {
  duration_ms?: number;
}

/** What a run of a coding agent has used in one session. The fields are those of `CostRecord`. */
export interface RunCost {
  kind: string;
  account: string;
  model: string | null;
  session_id: string | null;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  /** Where the program gives no price, it comes from the settings of its machine. */
  cost_usd_micro: number | null;
  turns: number;
  duration_ms: number;
  outcome: string;
}

/** The progress of a run. */
export interface RunNews {
  /** For how long it has run (ms); null while it waits at the machine. */
  ran_ms: number | null;
  progress: { pct: number | null; text: string } | null;
  /** The last line of its output. */
  line: string | null;
  costs: readonly RunCost[];
}

export type End =
  | {
      status: "completed";
      usage?: EndUsage;
      costs?: readonly RunCost[];
      output: unknown;
      verdict: string;
      verdict_reason: string;
      exit_code: number | null;
      /** The work that it has left in the repository of its machine. */
      work?: WorkFacts;
    }
  | {
      status: "failed";
      usage?: EndUsage;
      costs?: readonly RunCost[];
      kind: FailureKind;
      code: string;
      error: string;
      exit_code: number | null;
      signal: string | null;
      /** False when another run cannot help. */
      can_retry?: boolean;
      output?: unknown;
    }
  /** The machine refuses such tasks. */
  | { status: "refused"; reason: string };

/** How a run has ended. */
export interface Result {
  dispatch: Dispatch;
  target: string;
  machine: string;
  /** See `Note`. */
  turn?: string;
  /** False when another machine may have got the job since. An older program does not say it. */
  is_sure?: boolean;
  end: End;
}

/** A heartbeat: the dispatches of one tree that a machine has. */
export interface Beat {
  machine: string;
  has: readonly BeatEntry[];
}

export interface BeatEntry {
  dispatch: Dispatch;
  target: string;
  /** See `Note`. */
  turn?: string;
  /** See `Result`. */
  is_sure?: boolean;
  /** Left out when the machine does not know it. */
  run?: RunNews;
}

/** The files in the folder of a run that other machines may read. */
export const LOG_FILES = [
  "stdout.log",
  "stderr.log",
  "events.jsonl",
  "events.times",
  "session.json",
] as const;
export type LogFile = (typeof LOG_FILES)[number];

/** Asks the machine of a dispatch for a part of a log. */
export interface LogAsk {
  /** The answer has the same text. */
  request: string;
  dispatch: Dispatch;
  file: LogFile;
  /** Where the part begins (bytes). A negative number counts from the end of the file. */
  from: number;
}

/** A part of a log. */
export interface LogPart {
  request: string;
  /** False when the machine has no logs of this run: it has not begun, or its logs are past their retention. */
  is_found: boolean;
  /** True when the log will not grow any more. */
  has_ended: boolean;
  /** The size of the file, and where this part begins in it (bytes). */
  size: number;
  from: number;
  /** Base64, at most `LOG_BYTES_MAX` bytes of the file. */
  data: string;
}

/** The report of a machine about itself, to all others. */
export interface MachineReport {
  machine: string;
  /** The version of mailchute. */
  program: string;
  /** The targets whose tasks it runs; empty when it only sends. */
  serves: readonly string[];
  /** How many tasks of others it may have now (`room`), and how many it has (`open`). */
  room: number;
  open: number;
  /** Why it takes none, when `room` is 0. An older program does not say it. */
  why?: string;
  /** Its tree, so that two machines of one name are noticed. An older program does not say it. */
  tree?: string;
  is_draining: boolean;
  /** The load average of its host over a minute, and its processors. */
  load: number;
  cpus: number;
}

/** Asks a machine to take no more tasks of others, or to take them again. Its next report confirms that. */
export interface Drain {
  is_draining: boolean;
}

/** A bad message, with the reason. The message may hold secrets, so the reason quotes nothing of it. */
export class BadMessage extends Error {
  override readonly name = "BadMessage";
}

const Name = Type.String({ minLength: 1, maxLength: ID_CHARS_MAX });
const ExitCode = Type.Union([Type.Integer(), Type.Null()]);
const DispatchSchema = Type.Object({
  tree: Type.String({ pattern: "^[a-z0-9-]{1,32}[.][a-z0-9]{8}$" }),
  task: Name,
  submission: Type.String({ pattern: "^[a-z0-9]{1,32}$" }),
  attempt: Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS_MAX }),
});
const HEAD = { version: Type.Literal(VERSION), dispatch: DispatchSchema, target: Name };
const Amount = Type.Optional(Type.Number({ minimum: 0 }));
const Usage = Type.Optional(
  Type.Object({
    duration_ms: Amount,
    cpu_ms: Amount,
    peak_memory_bytes: Amount,
    denied: Type.Optional(
      Type.Array(Type.String({ maxLength: DENIED_CHARS_MAX }), { maxItems: DENIED_MAX }),
    ),
  }),
);
const Said = Type.String({ maxLength: SAID_CHARS_MAX });
const Tokens = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const orNull = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()]);
const Costs = Type.Array(
  Type.Object({
    kind: Said,
    account: Said,
    model: orNull(Said),
    session_id: orNull(Said),
    input_tokens: Tokens,
    cached_input_tokens: Tokens,
    output_tokens: Tokens,
    cost_usd_micro: orNull(Tokens),
    turns: Tokens,
    duration_ms: Tokens,
    outcome: Said,
  }),
  { maxItems: COSTS_MAX },
);
const News = Type.Object({
  ran_ms: orNull(Tokens),
  progress: orNull(
    Type.Object({ pct: orNull(Type.Number({ minimum: 0, maximum: 100 })), text: Said }),
  ),
  line: orNull(Said),
  costs: Costs,
});
const Ref = Type.String({ maxLength: REF_CHARS_MAX });
const Work = Type.Object({
  landing: Type.Union(["branch", "nothing", "landed"].map((is) => Type.Literal(is))),
  branch: Ref,
  base: Ref,
  target: Ref,
  diffstat: Type.Object({ files: Tokens, insertions: Tokens, deletions: Tokens }),
});
const EndSchema = Type.Union([
  Type.Object({
    status: Type.Literal("completed"),
    usage: Usage,
    costs: Type.Optional(Costs),
    output: Type.Unknown(),
    verdict: Type.String(),
    verdict_reason: Type.String(),
    exit_code: ExitCode,
    work: Type.Optional(Work),
  }),
  Type.Object({
    status: Type.Literal("failed"),
    usage: Usage,
    costs: Type.Optional(Costs),
    kind: Type.Union(FAILURE_KINDS.map((kind) => Type.Literal(kind))),
    code: Type.String(),
    error: Type.String(),
    exit_code: ExitCode,
    signal: Type.Union([Type.String(), Type.Null()]),
    can_retry: Type.Optional(Type.Boolean()),
    output: Type.Optional(Type.Unknown()),
  }),
  Type.Object({ status: Type.Literal("refused"), reason: Type.String() }),
]);

const jobForm = formOf(Type.Object({ ...HEAD, task: Type.Object({}) }), ["task"]);
const Turn = Type.Optional(Type.String({ maxLength: TURN_CHARS_MAX }));
const Sure = Type.Optional(Type.Boolean());
const resultForm = formOf(
  Type.Object({
    ...HEAD,
    machine: Name,
    turn: Turn,
    is_sure: Sure,
    end: EndSchema,
  }),
  ["end"],
);
const beatForm = formOf(
  Type.Object({
    version: Type.Literal(VERSION),
    machine: Name,
    has: Type.Array(
      Type.Object({
        dispatch: DispatchSchema,
        target: Name,
        turn: Turn,
        is_sure: Sure,
        run: Type.Optional(News),
      }),
      { maxItems: BEAT_DISPATCHES_MAX },
    ),
  }),
);

const Amounts = Type.Number({ minimum: 0, maximum: 1e9 });
const reportForm = formOf(
  Type.Object({
    version: Type.Literal(VERSION),
    machine: Name,
    program: Type.String({ maxLength: ID_CHARS_MAX }),
    serves: Type.Array(Name, { maxItems: SERVES_MAX }),
    room: Amounts,
    open: Amounts,
    why: Type.Optional(Type.String({ maxLength: WHY_CHARS_MAX })),
    tree: Type.Optional(Name),
    is_draining: Type.Boolean(),
    load: Amounts,
    cpus: Amounts,
  }),
);

const drainForm = formOf(
  Type.Object({ version: Type.Literal(VERSION), is_draining: Type.Boolean() }),
);

const Request = Type.String({ pattern: "^[a-z0-9]{1,32}$" });
const logAskForm = formOf(
  Type.Object({
    version: Type.Literal(VERSION),
    request: Request,
    dispatch: DispatchSchema,
    file: Type.Union(LOG_FILES.map((file) => Type.Literal(file))),
    from: Type.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
  }),
);
const logPartForm = formOf(
  Type.Object({
    version: Type.Literal(VERSION),
    request: Request,
    is_found: Type.Boolean(),
    has_ended: Type.Boolean(),
    size: Tokens,
    from: Tokens,
    data: Type.String({ pattern: "^[A-Za-z0-9+/]*={0,2}$", maxLength: 2 * LOG_BYTES_MAX }),
  }),
);

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
  return checkHead(jobForm<Job>(bytes), id);
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
  const result = checkHead(resultForm<Result>(bytes), id);
  if (result.machine !== sender.machine) throw new BadMessage(OTHER_SENDER);
  if (result.target !== sender.target)
    throw new BadMessage("it names another target than its sender");
  return result;
}

/** @param tree the tree that the heartbeat must be about. @param machine the sender. @throws BadMessage */
export function decodeBeat(bytes: Buffer, tree: string, machine: string): Beat {
  const beat = beatForm<Beat>(bytes);
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
  const report = reportForm<MachineReport>(bytes);
  checkTarget(report.machine, "machine");
  for (const target of report.serves) checkTarget(target, "serves");
  if (report.machine !== machine) throw new BadMessage(OTHER_SENDER);
  return report;
}

/** @param tree the asking tree. It may ask only about its own tasks. @throws BadMessage */
export function decodeLogAsk(bytes: Buffer, tree: string): LogAsk {
  const ask = logAskForm<LogAsk>(bytes);
  const { dispatch } = ask;
  checkTask(dispatch);
  if (dispatch.tree !== tree) throw new BadMessage("it asks about a task of another tree");
  return ask;
}

/** @throws BadMessage */
export function decodeLogPart(bytes: Buffer): LogPart {
  return logPartForm<LogPart>(bytes);
}

/** @throws BadMessage */
export function decodeDrain(bytes: Buffer): Drain {
  return drainForm<Drain>(bytes);
}

/** Makes a reader of messages of one form. @param free members in which any keys are allowed */
function formOf(schema: TSchema, free: readonly string[] = []): <T>(bytes: Buffer) => T {
  const check = compileCheck(schema);
  const freeMembers = new Set(free);
  return <T>(bytes: Buffer) => {
    if (bytes.length > MESSAGE_BYTES_MAX) throw new BadMessage(explainSize(bytes.length));
    const value = parse(bytes, freeMembers);
    const { version, ...rest } = value;
    if (Number.isInteger(version) && version !== VERSION)
      throw new BadMessage(`it has version ${String(version)}, and this program knows ${VERSION}`);
    const fault = check(value);
    if (fault !== undefined) throw new BadMessage(fault.message);
    return rest as T;
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
