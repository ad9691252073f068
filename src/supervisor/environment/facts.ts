/**
 * What happened in a supervisor, for services that set data by it. A fact is no order: the tick does the work, in the order of
 * the services. Questions between services are direct calls.
 */
import type { EventEmitter } from "node:events";
import type { BatchCounts } from "../../core/batch.ts";
import type { ProcessingName } from "../../core/names.ts";

export type JournalRecord = Readonly<Record<string, unknown>>;

export interface FactMap {
  /** A file came or went in the inbox; its name, if that is known. */
  "inbox:changed": [file: string | undefined];
  /** One of our own services put this file back into the inbox. */
  "inbox:written": [file: string];
  /** The same as `inbox:changed`, of the inbox of commands. */
  "control:changed": [file: string | undefined];
  "processing:changed": [];
  /** What lies in `processing/`. */
  "processing:listed": [files: readonly string[]];
  /** A task left the inbox under this name. */
  "task:accepted": [id: string, file: string];
  /** The id of this file was found taken when it was about to be accepted. */
  "task:duplicate": [file: string];
  /** A task waits in `processing/` again. `isLastRun`: its worker died, and no run is left after the next one. */
  "task:returned": [name: ProcessingName, isLastRun: boolean];
  /** A task's first run has begun, or it is being taken back: a pause holds for what comes next. */
  "task:begun": [id: string];
  "task:settled": [id: string, isCompleted: boolean, batch: BatchCounts | undefined];
  /** A task is gone from `processing/`, and no worker has said so. */
  "task:vanished": [id: string];
  /** A line of the journal and its event, undefined when it is no record. Few lines are parsed: see `JournalReader`. */
  "journal:line": [line: string, event: string | undefined, record: JournalRecord | undefined];
  /** The journal says that a task completed, by whatever process. */
  "journal:completed": [id: string];
  /** `supervisor.json` should be written soon. */
  "status:changed": [];
}

export type Facts = EventEmitter<FactMap>;
