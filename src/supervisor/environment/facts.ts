/**
 * Facts that the services of a supervisor tell each other. A listener only sets data, because a fact is no order: the tick does
 * the work, in the order of the services. A service that asks another one calls it directly.
 */
import type { EventEmitter } from "node:events";
import type { BatchCounts } from "../../core/batch.ts";
import type { ProcessingName } from "../../core/names.ts";

export type JournalRecord = Readonly<Record<string, unknown>>;

export interface FactMap {
  /** A file came or went in the inbox; with its name, if known. */
  "inbox:changed": [file: string | undefined];
  /** One of our own services put this file back into the inbox. */
  "inbox:written": [file: string];
  /** One of our own services takes this file out of the inbox. */
  "inbox:taken": [file: string];
  /** Like `inbox:changed`, for the inbox of commands. */
  "control:changed": [file: string | undefined];
  "processing:changed": [];
  /** A listing of `processing/`. */
  "processing:listed": [files: readonly string[]];
  /** A task left the inbox under this name. */
  "task:accepted": [id: string, file: string];
  /** When this file was about to be accepted, its id was found in use. */
  "task:duplicate": [file: string];
  /** A task waits in `processing/` again. `isLastRun`: its worker died, and only one run is left. */
  "task:returned": [name: ProcessingName, isLastRun: boolean];
  /** A task's first run has begun, or the task is being taken back: a pause applies to its next run. */
  "task:begun": [id: string];
  "task:settled": [id: string, isCompleted: boolean, batch: BatchCounts | undefined];
  /** A task may have failed for good, in any process: the tasks that wait for it are checked. */
  "task:failed": [id: string];
  /** A task was skipped, because a task that it depends on has failed, or because another task holds its key. */
  "task:skipped": [id: string, isDuplicate: boolean];
  /** This task in the inbox must not run, because the task `of` holds its key. */
  "task:key-taken": [id: string, key: string, of: string];
  /** A task is gone from `processing/`, and no worker has reported that. */
  "task:vanished": [id: string];
  /** A line of the journal, and its event; undefined when the line is no record. Few lines are parsed: see `JournalReader`. */
  "journal:line": [line: string, event: string | undefined, record: JournalRecord | undefined];
  /** The journal reports that a task completed, in any process. */
  "journal:completed": [id: string];
  /** `supervisor.json` should be written soon. */
  "status:changed": [];
}

export type Facts = EventEmitter<FactMap>;
