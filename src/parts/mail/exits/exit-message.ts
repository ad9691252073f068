/** Writes the message that tells how a task of an agent ended. It ends with the agent's last lines. Pure. */
import { parseLease } from "../../../core/names.ts";
import type { ErrorRecord, ResultRecord } from "../../../core/task.ts";
import type { Draft } from "../send/send.ts";
import type { RunNote } from "./run-notes.ts";

type Record = (ResultRecord | ErrorRecord) & { task?: unknown };

/** Why a wake-up ended without a run of its agent. */
export const NOTHING_UNREAD = "nothing was unread, so the agent was not started";
export const IS_ARCHIVED = "the agent was archived, so it was not started";

const LINES_MAX = 10;
const CHARS_MAX = 2000;

/**
 * The id, text and hops of the message about this exit. They are always the same, because a crash may cause a second message.
 * @param record undefined when another program has removed it
 * @returns undefined when no agent ran for the task
 */
export function exitMessage(
  note: RunNote,
  record: Record | undefined,
): (Pick<Draft, "text" | "hops"> & { id: string }) | undefined {
  const { submission, attempt } = parseLease(record?.lease ?? "") ?? {};
  const run = submission === undefined ? note.run : `${submission}.${attempt}`;
  if (run === null || isNeedless(note.task, record)) return undefined;
  const id = `exit-${note.task}@${run}`;
  if (record === undefined)
    return {
      id,
      text: `${note.task} ended, and its record was taken away: see mailchute show ${note.task}`,
      hops: 0,
    };
  return {
    id,
    text: `${headOf(note.task, record)}${lastWords(record)}`,
    hops: hopsOf(note.task, record),
  };
}

function isNeedless(task: string, record: Record | undefined): boolean {
  return (
    task.startsWith("wake.") &&
    record?.status === "completed" &&
    [NOTHING_UNREAD, IS_ARCHIVED].includes(record.verdict_reason)
  );
}

function headOf(task: string, record: Record): string {
  if (record.status === "failed")
    return `${task} failed (${record.kind}): ${firstLine(record.error)}`;
  const reason = firstLine(record.verdict_reason);
  return `${task} completed, verdict ${record.verdict}${reason === "" ? "" : ` (${reason})`}`;
}

/** The last lines of the agent's output, or of its error. */
function lastWords(record: Record): string {
  const { output } = record;
  const said = typeof output === "string" ? output : "";
  const text =
    said === "" && record.status === "failed" ? record.error.split("\n").slice(1).join("\n") : said;
  const lines = text.trimEnd().split("\n").slice(-LINES_MAX).join("\n").slice(-CHARS_MAX);
  return lines === "" ? "" : `\n\n${lines}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]?.slice(0, CHARS_MAX) ?? "";
}

/** The hops of the message. A wake-up is a step in a chain of messages. Any other task is work, and begins a new chain. */
function hopsOf(task: string, { task: own }: Record): number {
  const env = (own as { env?: unknown } | undefined)?.env as
    | { MAILCHUTE_HOPS?: unknown }
    | undefined;
  const hops = Number(env?.MAILCHUTE_HOPS);
  return task.startsWith("wake.") && Number.isInteger(hops) && hops > 0 ? hops : 0;
}
