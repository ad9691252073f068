/** The task that runs a callback. Its environment describes the ended task. Pure: one settlement always gives the same bytes. */
import { join } from "node:path";
import type { DecodedRecord } from "../../codec/records.ts";
import { CALLBACK_GROUP, type CallbackEvent } from "../../core/callback.ts";
import { compact } from "../../core/compact.ts";
import { derivedId } from "../../core/derived-id.ts";
import { errorName, type ProcessingName, resultName } from "../../core/names.ts";
import { headlineOf } from "../../core/outcome.ts";
import { PRIORITY_MAX, priorityNumber } from "../../core/priority.ts";
import type { Task } from "../../core/task.ts";
import { visible } from "../../core/visible.ts";
import type { Ended } from "../../mailbox/files/trays.ts";

/** Longest text in the environment (characters). Longer ones are cut. */
const TEXT_MAX = 1000;
/** Fields that a callback takes from the task that declares it, unless it sets them itself. */
const SURROUNDINGS = ["cwd", "env", "env_from"] as const;

export interface Place {
  /** The folders of the mailbox and of the runs. */
  mailbox: string;
  runs: string;
}

export interface Call {
  event: CallbackEvent;
  /** What to run: a program with its arguments, or the fields of a task. */
  what: string[] | Record<string, unknown>;
  /** True when the task itself declares it. Only then the callback takes the `SURROUNDINGS` of the task. */
  isOwn: boolean;
}

/** One id for each event of a submission, so a task that runs again after a retry calls again. */
export function callbackIdOf({ id, submission }: ProcessingName, event: CallbackEvent): string {
  return derivedId(id, `.${submission}.${event}`);
}

export function callbackTask(
  ended: Ended,
  record: DecodedRecord["record"],
  { event, what, isOwn }: Call,
  place: Place,
): Task {
  const { name } = ended.claim;
  const { task } = ended;
  const said = Array.isArray(what) ? { exec: what } : what;
  const from: Record<string, unknown> = {};
  for (const field of isOwn ? SURROUNDINGS : []) from[field] = task?.[field];
  const own = said as Partial<Task>;
  return {
    title: `${event} of ${name.id}`,
    group: CALLBACK_GROUP,
    // It does not wait behind the backlog.
    priority: Math.min((priorityNumber(task?.priority) ?? 0) + 1, PRIORITY_MAX),
    ...compact(from),
    ...own,
    id: callbackIdOf(name, event),
    callback_of: name.id,
    parent_id: name.id,
    created_at: record.status === "completed" ? record.completed_at : record.failed_at,
    env: {
      ...(isOwn ? task?.env : {}),
      ...own.env,
      MAILCHUTE_CALLBACK: event,
      ...factsOf(ended, record, place),
    },
  };
}

/** The variables that a callback reads. A missing fact is an empty text, so a script need not check whether it is set. */
function factsOf(
  { claim: { name }, task, status, recordAs }: Ended,
  record: DecodedRecord["record"],
  { mailbox, runs }: Place,
): Record<string, string> {
  const isCompleted = record.status === "completed";
  const file = isCompleted
    ? join("outbox", resultName(name.id))
    : join("failed", errorName(name.id));
  const run = record.run === null || record.run === undefined ? "" : join(runs, record.run);
  const facts = {
    ID: name.id,
    STATUS: status,
    KIND: isCompleted ? "" : record.kind,
    ERROR: isCompleted ? "" : cut(headlineOf(record.error)),
    EXIT_CODE: record.exit_code ?? "",
    SIGNAL: isCompleted ? "" : (record.signal ?? ""),
    ATTEMPTS: record.attempts,
    DURATION_MS: isCompleted ? record.duration_ms : "",
    ENDED_AT: isCompleted ? record.completed_at : record.failed_at,
    LEASE: record.lease,
    TITLE: cut(task?.title ?? ""),
    GROUP: cut(task?.group ?? ""),
    RECORD: join(mailbox, recordAs ?? file),
    RUN: run,
    OUTPUT: run === "" ? "" : join(run, "stdout.log"),
  };
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [`MAILCHUTE_OF_${key}`, String(value)]),
  );
}

/** Removes characters that an environment cannot hold or that control a terminal, and shortens the text to `TEXT_MAX`. */
function cut(text: string): string {
  const plain = visible(text);
  return plain.length > TEXT_MAX ? `${plain.slice(0, TEXT_MAX - 1)}…` : plain;
}
