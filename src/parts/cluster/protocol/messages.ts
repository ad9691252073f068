/** The messages between machines: JSON, checked like a dropped file by `message-codec.ts`. */
import { FAILURE_KINDS } from "../../../codec/record-schemas.ts";
import {
  type Static,
  type TLiteral,
  type TNull,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
  Type,
} from "../../../codec/typebox.ts";
import { ID_CHARS_MAX, MAX_ATTEMPTS_MAX } from "../../../core/limits.ts";
import { DENIED_CHARS_MAX, DENIED_MAX } from "../../../core/run-usage.ts";

/** Servers take messages of up to 1 MB by default, subject and headers included (bytes). */
export const MESSAGE_BYTES_MAX = 900_000;
/** A heartbeat has at most this many dispatches. A machine with more sends several heartbeats. */
export const BEAT_DISPATCHES_MAX = 1000;
/** A heartbeat has at most about this size (bytes). */
export const BEAT_BYTES_MAX = MESSAGE_BYTES_MAX / 2;
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

export const VERSION = 1;
const HEAD = { version: Type.Literal(VERSION) };

/** The files in the folder of a run that other machines may read. */
export const LOG_FILES = [
  "stdout.log",
  "stderr.log",
  "events.jsonl",
  "events.times",
  "session.json",
] as const;
export type LogFile = (typeof LOG_FILES)[number];

const Name = Type.String({ minLength: 1, maxLength: ID_CHARS_MAX });
const Said = Type.String({ maxLength: SAID_CHARS_MAX });
const Ref = Type.String({ maxLength: REF_CHARS_MAX });
const Tokens = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Amount = Type.Optional(Type.Number({ minimum: 0 }));
const Amounts = Type.Number({ minimum: 0, maximum: 1e9 });
const ExitCode = orNull(Type.Integer());
const DispatchSchema = Type.Object({
  tree: Type.String({ pattern: "^[a-z0-9-]{1,32}[.][a-z0-9]{8}$" }),
  task: Name,
  submission: Type.String({ pattern: "^[a-z0-9]{1,32}$" }),
  attempt: Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS_MAX }),
});

/** The resources that a run has used, as far as its machine knows. */
const Usage = Type.Object({
  duration_ms: Amount,
  cpu_ms: Amount,
  peak_memory_bytes: Amount,
  left_processes: Amount,
  denied: Type.Optional(
    Type.Array(Type.String({ maxLength: DENIED_CHARS_MAX }), { maxItems: DENIED_MAX }),
  ),
});

/** What a run of a coding agent has used in one session. The fields are those of `CostRecord`. */
const Cost = Type.Object({
  kind: Said,
  account: Said,
  model: orNull(Said),
  session_id: orNull(Said),
  input_tokens: Tokens,
  cached_input_tokens: Tokens,
  output_tokens: Tokens,
  /** Where the program gives no price, it comes from the settings of its machine. */
  cost_usd_micro: orNull(Tokens),
  turns: Tokens,
  duration_ms: Tokens,
  outcome: Said,
});
const Costs = Type.Unsafe<readonly RunCost[]>(Type.Array(Cost, { maxItems: COSTS_MAX }));

/** The progress of a run. */
const News = Type.Object({
  /** For how long it has run (ms); null while it waits at the machine. */
  ran_ms: orNull(Tokens),
  progress: orNull(
    Type.Object({ pct: orNull(Type.Number({ minimum: 0, maximum: 100 })), text: Said }),
  ),
  /** The last line of its output. */
  line: orNull(Said),
  costs: Costs,
});

/** The work that a run has left in the repository of its machine. */
const Work = Type.Object({
  landing: oneOf(["branch", "nothing", "landed"]),
  branch: Ref,
  base: Ref,
  target: Ref,
  diffstat: Type.Object({ files: Tokens, insertions: Tokens, deletions: Tokens }),
});

const EndSchema = Type.Union([
  Type.Object({
    status: Type.Literal("completed"),
    usage: Type.Optional(Usage),
    costs: Type.Optional(Costs),
    output: Type.Unknown(),
    verdict: Type.String(),
    verdict_reason: Type.String(),
    exit_code: ExitCode,
    work: Type.Optional(Work),
  }),
  Type.Object({
    status: Type.Literal("failed"),
    usage: Type.Optional(Usage),
    costs: Type.Optional(Costs),
    kind: oneOf(FAILURE_KINDS),
    code: Type.String(),
    error: Type.String(),
    exit_code: ExitCode,
    signal: orNull(Type.String()),
    /** False when another run cannot help. */
    can_retry: Type.Optional(Type.Boolean()),
    output: Type.Optional(Type.Unknown()),
  }),
  /** The machine refuses such tasks. */
  Type.Object({ status: Type.Literal("refused"), reason: Type.String() }),
]);

/** Asks for one run of a task. */
export const JobSchema = message({
  dispatch: DispatchSchema,
  /** The machines that may run it: see `isTarget`. */
  target: Name,
  /** The fields of the task that are sent: see `sentFields`. */
  task: Type.Unsafe<Record<string, unknown>>(Type.Object({})),
});

/** What a machine says of a run. */
const RUN = {
  dispatch: DispatchSchema,
  target: Name,
  /** See `Note`. */
  turn: Type.Optional(Type.String({ maxLength: TURN_CHARS_MAX })),
  /** False when another machine may have got the job since. An older program does not say it. */
  is_sure: Type.Optional(Type.Boolean()),
};

/** How a run has ended. */
export const ResultSchema = message({ ...RUN, machine: Name, end: EndSchema });

/** Left out of a heartbeat when the machine does not know it: `run`. */
const BeatEntrySchema = Type.Object({ ...RUN, run: Type.Optional(News) });

/** A heartbeat: the dispatches of one tree that a machine has. */
export const BeatSchema = message({
  machine: Name,
  has: Type.Array(BeatEntrySchema, { maxItems: BEAT_DISPATCHES_MAX }),
});

/** The report of a machine about itself, to all others. */
export const ReportSchema = message({
  machine: Name,
  /** The version of mailchute. */
  program: Type.String({ maxLength: ID_CHARS_MAX }),
  /** The targets whose tasks it runs; empty when it only sends. */
  serves: Type.Array(Name, { maxItems: SERVES_MAX }),
  /** How many tasks of others it may have now (`room`), and how many it has (`open`). */
  room: Amounts,
  open: Amounts,
  /** Why it takes none, when `room` is 0. An older program does not say it. */
  why: Type.Optional(Type.String({ maxLength: WHY_CHARS_MAX })),
  /** Its tree, so that two machines of one name are noticed. An older program does not say it. */
  tree: Type.Optional(Name),
  is_draining: Type.Boolean(),
  /** The load average of its host over a minute, and its processors. */
  load: Amounts,
  cpus: Amounts,
});

/** Asks a machine to take no more tasks of others, or to take them again. Its next report confirms that. */
export const DrainSchema = message({ is_draining: Type.Boolean() });

/** The answer to a question about a log has the same text. */
const Request = Type.String({ pattern: "^[a-z0-9]{1,32}$" });

/** Asks the machine of a dispatch for a part of a log. */
export const LogAskSchema = message({
  request: Request,
  dispatch: DispatchSchema,
  file: oneOf(LOG_FILES),
  /** Where the part begins (bytes). A negative number counts from the end of the file. */
  from: Type.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
});

/** A part of a log. */
export const LogPartSchema = message({
  request: Request,
  /** False when the machine has no logs of this run: it has not begun, or its logs are past their retention. */
  is_found: Type.Boolean(),
  /** True when the log will not grow any more. */
  has_ended: Type.Boolean(),
  /** The size of the file, and where this part begins in it (bytes). */
  size: Tokens,
  from: Tokens,
  /** Base64, at most `LOG_BYTES_MAX` bytes of the file. */
  data: Type.String({ pattern: "^[A-Za-z0-9+/]*={0,2}$", maxLength: 2 * LOG_BYTES_MAX }),
});

export type EndUsage = Static<typeof Usage>;
export type RunCost = Static<typeof Cost>;
export type RunNews = Static<typeof News>;
export type RunWork = Static<typeof Work>;
export type End = Static<typeof EndSchema>;
export type Job = Sent<typeof JobSchema>;
export type Result = Sent<typeof ResultSchema>;
export type BeatEntry = Static<typeof BeatEntrySchema>;
export type Beat = Sent<typeof BeatSchema>;
export type MachineReport = Sent<typeof ReportSchema>;
export type Drain = Sent<typeof DrainSchema>;
export type LogAsk = Sent<typeof LogAskSchema>;
export type LogPart = Sent<typeof LogPartSchema>;

/** A message without its version, which only the codec sees. */
export type Sent<S extends TSchema> = Omit<Static<S>, "version">;

function message<P extends TProperties>(members: P): TObject<P & typeof HEAD> {
  return Type.Object({ ...HEAD, ...members });
}

function orNull<S extends TSchema>(schema: S): TUnion<[S, TNull]> {
  return Type.Union([schema, Type.Null()]);
}

function oneOf<const T extends string>(words: readonly T[]): TUnion<TLiteral<T>[]> {
  return Type.Union(words.map((word) => Type.Literal(word)));
}
