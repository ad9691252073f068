/** The messages between supervisor and worker processes. They are only hints: a scan finds whatever is lost here. */
import type { EventEmitter } from "node:events";
import type { BatchCounts } from "../core/batch.ts";
import { isObject } from "../core/json-object.ts";
import type { Settings } from "../core/settings.ts";

/** The first message to a worker process: all that it needs to start. */
export interface WorkerBoot {
  stateDir: string;
  mailboxDir: string;
  settings: Settings;
  slots: number;
  /** How many threads of the process make its disk calls. */
  threads: number;
  /** True when a supervisor started it and sends it messages. */
  isSpawned: boolean;
}

/** What a supervisor needs of a process with a worker in it. Node's `ChildProcess` has it. */
export interface WorkerProcess extends Pick<EventEmitter, "on" | "once"> {
  /** Undefined when it could not be started. */
  readonly pid?: number | undefined;
  readonly connected: boolean;
  send(message: ToWorker, sent: () => void): unknown;
  kill(signal: "SIGKILL"): unknown;
  disconnect(): void;
  unref(): void;
}

/** A gate, and why tasks wait for it. */
export interface Hold {
  gate: string;
  why: string;
}

export type ToWorker =
  /** Accepted tasks (file names in `processing/`) that this worker should claim, best first. */
  | { type: "ready"; files: string[] }
  /** `control.json` changed. */
  | { type: "control" }
  /** Stop these leases. */
  | { type: "cancel"; leases: string[]; isFinal: boolean }
  /** Stop these leases and give their tasks back: their next runs continue the work. With `hold` they wait for that gate. */
  | { type: "interrupt"; leases: string[]; hold?: Hold }
  /** End: when the running attempts have ended (`drain`), or after giving them back. */
  | { type: "stop"; drain: boolean };

export interface SettledNotice {
  id: string;
  isCompleted: boolean;
  /** Only for a batch. */
  batch?: BatchCounts;
  /** Path of its record, relative to the mailbox, when another file is at its final name. */
  recordAs?: string;
}

export interface ReturnedNotice {
  /** Name in `processing/` under which the task waits again. */
  file: string;
  delayMs: number;
  /** What the disk or the machine refused; set when the task waits again for that reason. */
  trouble?: string;
}

export type ToSupervisor =
  | { type: "hello"; id: string }
  /** Another process sent it this signal: it claims nothing more, and ends when its running attempts end. */
  | { type: "leaving"; signal: string }
  | {
      type: "progress";
      /** Files whose tasks this worker has ended, offered or found, with any result. */
      done: string[];
      settled: SettledNotice[];
      returned: ReturnedNotice[];
      /** Attempts that it found itself and runs now. */
      extra: number;
      /** Attempts that have run and wait for the disk: they take no slot. */
      unsettled: number;
    };

/** Whether a message is one of ours. Handlers run in the worker process, and many libraries send "ready" to the parent process. */
export function isToSupervisor(message: unknown): message is ToSupervisor {
  if (!isObject(message)) return false;
  if (message["type"] === "hello") return true;
  if (message["type"] === "leaving") return typeof message["signal"] === "string";
  return (
    message["type"] === "progress" &&
    Array.isArray(message["done"]) &&
    Array.isArray(message["settled"]) &&
    Array.isArray(message["returned"]) &&
    typeof message["extra"] === "number" &&
    typeof message["unsettled"] === "number"
  );
}
