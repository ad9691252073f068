/**
 * Logs why an agent was woken, or got mail in a run: `wakes/<agent>.jsonl`, one line each time. Only the supervisor of the agent writes
 * it. The log shows how long the chain of messages is that a run continues, and how often an agent has woken itself.
 */
import { systemCode } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import { appendRegularText, readRegularText, statOf } from "../../../host/regular-file.ts";
import { replaceText } from "../../../host/replace-document.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "./mail-folder.ts";

export interface WakeRecord {
  v: 1;
  /** Unix seconds. */
  at: number;
  task: string;
  /** True: the task was made to wake the agent. False: the agent was at work on the task. */
  is_wake: boolean;
  hops: number;
  /** True if the agent itself had sent all of the mail. */
  is_self: boolean;
  /** Ids of the messages, at most `IDS_MAX`. `from`: their senders. */
  ids: string[];
  from: string[];
}

export const IDS_MAX = 10;
const FILE_BYTES_MAX = 256 * 1024;
/** How many records are kept when the file is full. */
const KEPT = 200;

/** @throws a system error */
export function noteWake(folder: MailFolder, name: string, record: WakeRecord): void {
  const path = pathOf(folder, name);
  folder.makeDir("wakes");
  const size = statOf(path)?.size ?? 0;
  if (size > FILE_BYTES_MAX) {
    const kept = readWakes(folder, name).slice(-KEPT).map(lineOf);
    replaceText(path, kept.join(""), { stagingDir: folder.path(".tmp") });
  }
  // The line break ends a line that a crash has torn.
  appendRegularText(path, `\n${lineOf(record)}`);
}

/** The oldest first. @throws a system error: the guard against loops must not take an unreadable log for an empty one */
export function readWakes(folder: MailFolder, name: string): WakeRecord[] {
  let text: string;
  try {
    text = readRegularText(pathOf(folder, name));
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    const found = parseObject(line) as WakeRecord | undefined;
    return found?.v === 1 && typeof found.task === "string" ? [found] : [];
  });
}

function lineOf(record: WakeRecord): string {
  return `${JSON.stringify(record)}\n`;
}

function pathOf(folder: MailFolder, name: string): string {
  return folder.path("wakes", `${folderOf(name)}.jsonl`);
}
