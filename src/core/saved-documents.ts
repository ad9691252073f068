/** Reads the documents of a state tree: people and other programs can change them, too. */
import type { LastWord } from "./command.ts";
import type { SupervisorDocument, WorkerDocument } from "./documents.ts";
import { isObject } from "./json-object.ts";
import { WORKERS_MAX } from "./limits.ts";
import { parseRate } from "./rate.ts";
import {
  goodOf,
  having,
  type Is,
  ifThere,
  isCount,
  isFlag,
  isNumber,
  isText,
  listOf,
  type Of,
  optional,
  orElse,
  orNull,
  recordOf,
  type Shape,
  shape,
} from "./shape.ts";
import type { LimitChange } from "./task-limits.ts";

const isWorkers: Is<number> = (value): value is number => isCount(value) && value <= WORKERS_MAX;
const isPositive: Is<number> = (value): value is number => isCount(value) && value > 0;
const isRate: Is<string> = (value): value is string =>
  isText(value) && parseRate(value) !== undefined;
const isLastWord: Is<LastWord> = having({ arrivedMs: isNumber, name: isText, id: isText });
const isLimitChange: Is<LimitChange> = having({
  slots: optional(isWorkers),
  paused: optional(isFlag),
  rate: optional(isRate),
  burst: optional(isPositive),
});

/**
 * `control.json`: what commands have set. A new supervisor reads it. Workers read `paused` and `slots` before each claim. A member without a
 * valid value has the value of a new tree.
 */
const control = shape({
  paused: orElse(isFlag, false),
  /** When the pool was paused (ISO 8601), and the id of the command; null when it is not paused. */
  paused_at: orElse(orNull(isText), null),
  paused_by: orElse(orNull(isText), null),
  /** Nodes that were in progress at the pause and whose run had not begun. These runs still begin. */
  launched: orElse(listOf(isText), []),
  replan_paused: orElse(isFlag, false),
  /** Overrides the setting `workers`; null = the setting is used. */
  max_workers: orElse(orNull(isWorkers), null),
  max_workers_by: orElse(orNull(isText), null),
  /** The setting `workers` at the time of the command; null without an override, or when an earlier version wrote it. */
  max_workers_over: orElse(orNull(isWorkers), null),
  /** Slots of each worker process, by worker id. A worker that is not listed uses the number it was started with. */
  slots: orElse(recordOf(isCount), {}),
  /** Nonces of commands that this document already contains, but that were not acknowledged yet. */
  applied: orElse(listOf(isText), []),
  /** For each subject, the last command that ran before older ones did: see `LastWord`. */
  last_words: orElse(recordOf(isLastWord), {}),
  /** The changes that commands made to groups and limits: see `task-limits.ts`. */
  limit_changes: orElse(recordOf(isLimitChange), {}),
});
export type ControlDocument = Of<typeof control>;

export const controlOf = (saved: Record<string, unknown> | undefined): ControlDocument =>
  control(saved ?? {}) as ControlDocument;
export const INITIAL_CONTROL = controlOf(undefined);

/** The process that a document names. */
const RESIDENT = { pid: isPositive, place: isText, start_ticks: isNumber };
const isTroubles = listOf(having({ what: isText, do: isText }));
const isHolds = having({
  asking: listOf(having({ id: isText })),
  held: listOf(having({ id: isText, why: isText })),
});
const GATE = { gate: isText, agents: listOf(isText), until_ms: isNumber, why: isText, do: isText };
const isAnObject: Is<object> = (value): value is object => isObject(value);

/** Reads `supervisor.json`. Undefined when it names no process; then no supervisor is known. An invalid report is left out. */
export const supervisorOf = shape({
  ...RESIDENT,
  nonce: ifThere(isText),
  status: ifThere(isText),
  waiting: ifThere(isAnObject),
  intake_stopped: optional(orNull(isAnObject)),
  roadmap: optional(orNull(recordOf(isCount))),
  plan_holds: optional(orNull(isHolds)),
  troubles: optional(isTroubles),
  field_warnings: optional(isTroubles),
  gates: goodOf(having(GATE)),
  limits: optional(recordOf(having({ waiting: isCount, in_work: isCount }))),
  handlers: optional(listOf(isText)),
}) as Shape<SupervisorDocument>;

/** Reads `workers/<id>.json`. Undefined when it names no worker process. */
export const workerOf = shape({
  ...RESIDENT,
  id: isText,
  slots: isCount,
}) as Shape<WorkerDocument>;

const isRemoteRun = having({
  id: isText,
  /** The lease in its file name in `processing/`. */
  lease: isText,
  machine: isText,
  target: isText,
  /** Epoch ms; null while it waits there. */
  began_ms: orNull(isNumber),
  /** The progress that the run itself reports. */
  progress: orNull(having({ pct: orNull(isNumber), text: isText })),
  last_line: orNull(isText),
  /** The cost so far (millionths of a US dollar). */
  cost_usd_micro: orNull(isNumber),
});
export type RemoteRun = Of<typeof isRemoteRun>;

/** `cluster/runs.json`: the tasks of this tree that other machines hold, as those machines report them. */
export const remoteRunsOf = shape({
  /** The process that wrote it: see `host/identity`. */
  owner: isText,
  runs: goodOf(isRemoteRun),
});
