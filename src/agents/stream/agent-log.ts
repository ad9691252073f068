/** The log of an agent: one record for each line of its program that means something, in the same form for all kinds. */
import { randomUUID } from "node:crypto";
import type { Fact } from "./facts.ts";

/** A line of `logs/<agent>.jsonl`. */
export interface AgentLogRecord {
  v: 1;
  id: string;
  /** The scope of the agent; left out in a tree without mail. */
  project?: string;
  branch?: string;
  agent_name: string;
  /** The kind of the agent. */
  agent_type: string;
  event_type: string;
  tool_name: string | null;
  content: string;
  /** The line of the program, shortened. The whole line is in `events.jsonl` of the run. */
  raw: string;
  command: string | null;
  exit_code: number | null;
  status: string | null;
  tool_use_id: string | null;
  /** Unix seconds. */
  created_at: number;
  task_id: string;
  run: string;
}

/** The agent and the run of the log. */
export type LogSubject = Pick<
  AgentLogRecord,
  "agent_name" | "agent_type" | "task_id" | "run" | "project" | "branch"
>;

/** How much of a text and of a line is in a record (characters). */
const TEXT_MAX = 4000;
const RAW_MAX = 2000;

/** Undefined for facts that no reader needs. */
export function logRecordOf(
  subject: LogSubject,
  fact: Fact,
  raw: string,
  createdAt: number,
): AgentLogRecord | undefined {
  const words = wordsOf(fact);
  if (words === undefined) return undefined;
  const { task_id: taskId, run, ...owner } = subject;
  return {
    v: 1,
    id: randomUUID(),
    ...owner,
    tool_name: null,
    command: null,
    exit_code: null,
    status: null,
    tool_use_id: null,
    ...words,
    content: words.content.slice(0, TEXT_MAX),
    raw: raw.slice(0, RAW_MAX),
    created_at: createdAt,
    task_id: taskId,
    run,
  };
}

type Words = Pick<AgentLogRecord, "event_type" | "content"> &
  Partial<Pick<AgentLogRecord, "tool_name" | "command" | "exit_code" | "status" | "tool_use_id">>;

function wordsOf(fact: Fact): Words | undefined {
  switch (fact.fact) {
    case "session":
      return { event_type: "session_started", content: fact.id };
    case "turn_started":
      return { event_type: "turn_started", content: "" };
    case "turn_ended":
      return {
        event_type: "turn_ended",
        content: fact.end.text,
        status: fact.end.fault === undefined ? "completed" : fact.end.fault,
      };
    case "said":
      return { event_type: "agent_message", content: fact.text };
    case "thought":
      return { event_type: "reasoning", content: fact.text };
    case "tool_started":
      return {
        event_type: "tool_started",
        content: "",
        tool_name: fact.name,
        command: fact.input.slice(0, TEXT_MAX),
        status: "in_progress",
        tool_use_id: fact.id,
      };
    case "tool_ended":
      return {
        event_type: "tool_ended",
        content: fact.output,
        exit_code: fact.exitCode,
        status: fact.isError ? "failed" : "completed",
        tool_use_id: fact.id,
      };
    case "file_changed":
      return { event_type: "file_change", content: fact.path, status: fact.change };
    case "compacted":
      return { event_type: "context_compacted", content: "" };
    case "quota":
      return fact.isRejected
        ? { event_type: "quota_refused", content: fact.window ?? "", status: "rejected" }
        : undefined;
    case "api_retry":
      return { event_type: "api_retry", content: fact.text, status: String(fact.status ?? "") };
    case "notice":
      return { event_type: "notice", content: fact.text };
    case "message":
      return { event_type: "message", content: "", status: fact.state, tool_use_id: fact.uuid };
    case "unknown":
      return { event_type: fact.type, content: "" };
    default:
      return undefined;
  }
}
