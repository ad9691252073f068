/** What supervisor and worker processes say to each other. Hints only: whatever is lost here, a scan finds. */
import type { BatchCounts } from "../core/batch.ts";
import { isObject } from "../core/json-object.ts";
import type { Settings } from "../core/settings.ts";

/** What a worker process is started with: the first message that it gets. */
export interface WorkerBoot {
  stateDir: string;
  mailboxDir: string;
  settings: Settings;
  slots: number;
  /** So many threads wait for its disk. */
  threads: number;
  /** True when a supervisor started it and speaks to it. */
  isSpawned: boolean;
}

export type ToWorker =
  /** Accepted tasks (file names in `processing/`) that this worker should claim, best first. */
  | { type: "ready"; files: string[] }
  /** `control.json` changed. */
  | { type: "control" }
  /** Stop these leases. */
  | { type: "cancel"; leases: string[]; isFinal: boolean }
  /** End: when what runs has ended (`drain`), or after giving it back. */
  | { type: "stop"; drain: boolean };

export interface SettledNotice {
  id: string;
  isCompleted: boolean;
  /** Of a batch. */
  batch?: BatchCounts;
  /** Where its record is, relative to the mailbox, when something else stands at its final name. */
  recordAs?: string;
}

export interface ReturnedNotice {
  /** Name in `processing/` under which the task waits again. */
  file: string;
  delayMs: number;
  /** What the disk or the machine refused, when that is why it waits again. */
  trouble?: string;
}

export type ToSupervisor =
  | { type: "hello"; id: string }
  /** Another process sent it this signal: it claims nothing more, and ends with what it runs. */
  | { type: "leaving"; signal: string }
  | {
      type: "progress";
      /** Files whose tasks this worker has ended, offered or found, with whatever result. */
      done: string[];
      settled: SettledNotice[];
      returned: ReturnedNotice[];
      /** Attempts it found by itself and runs now. */
      extra: number;
      /** Attempts that have run and wait for the disk: they take no slot. */
      unsettled: number;
    };

/** Whether a message is one of ours: handlers run in the process of their worker, and many a library says "ready" to its parent. */
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
