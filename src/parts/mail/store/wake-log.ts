/**
 * Why an agent was woken, or got mail in a run: `wakes/<agent>.jsonl`, a line for each time. Only the supervisor of the agent writes it.
 * From it follows how long a chain of messages is that a run continues, and how often an agent has woken itself.
 */
import fs from "node:fs";
import { systemCode } from "../../../core/errors.ts";
import { parseObject } from "../../../core/json-object.ts";
import { replaceText } from "../../../host/documents.ts";
import { appendRegularText, readRegularText } from "../../../host/regular-file.ts";
import { folderOf } from "../scope/scope.ts";
import type { MailFolder } from "./mail-folder.ts";

export interface WakeRecord {
  v: 1;
  /** Unix seconds. */
  at: number;
  task: string;
  /** Whether that task was made to wake it. False: it was at work on the task. */
  is_wake: boolean;
  hops: number;
  /** All its mail was its own. */
  is_self: boolean;
  /** The messages, at most `IDS_MAX`, and who sent them. */
  ids: string[];
  from: string[];
}

export const IDS_MAX = 10;
const FILE_BYTES_MAX = 256 * 1024;
/** So many records stay when the file is full. */
const KEPT = 200;

/** @throws a system error */
export function noteWake(folder: MailFolder, name: string, record: WakeRecord): void {
  const path = pathOf(folder, name);
  folder.makeDir("wakes");
  const size = fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > FILE_BYTES_MAX) {
    const kept = readWakes(folder, name).slice(-KEPT).map(lineOf);
    replaceText(path, kept.join(""), { stagingDir: folder.path(".tmp") });
  }
  // A line that a crash has torn ends here.
  appendRegularText(path, `\n${lineOf(record)}`);
}

/** The oldest first. @throws a system error: a guard against loops must not take it for none */
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
