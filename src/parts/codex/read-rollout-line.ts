/**
 * Reads the lines of a rollout file, the program's own record of a thread. Pure. It has what `codex exec --json` leaves out: when a
 * quota is free again, tokens while a turn runs, compaction, and refused commands. The rest is in the stream. The program appends
 * to the old file of a resumed thread, so reading begins where that file ended when the run began.
 */
import type { Fact, ReadLine } from "../../agents/stream/facts.ts";
import {
  type JsonMembers,
  listOf,
  membersAt,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readRateLimits, readUsage } from "./usage.ts";

/** The text that the model gets instead of a command's output. No command's own output begins like this. */
const REFUSED = /^(approval policy is never; reject|exec_command failed:.*\brejected\b)/i;

export function newCodexRolloutReader(): ReadLine {
  return (line) => {
    const record = readObjectLine(line);
    return record === undefined
      ? []
      : readRecord(textOf(record["type"]), membersAt(record, "payload"));
  };
}

/** The text that the model was given on this line: a prompt, or what the program adds by itself. It keeps no uuids of ours here. */
export function readRolloutMessage(line: string): { text: string } | undefined {
  // Most lines are none. They may be long.
  if (!line.includes('"user"')) return undefined;
  const { type, payload } = readObjectLine(line) ?? {};
  const { role, content } = membersAt(payload);
  if (type !== "response_item" || role !== "user") return undefined;
  return {
    text: listOf(content)
      .map((part) => textOf(membersAt(part)["text"]))
      .join(""),
  };
}

function readRecord(type: string, payload: JsonMembers): Fact[] {
  switch (type) {
    case "event_msg":
      if (payload["type"] !== "token_count") return [];
      return [
        ...readUsage(membersAt(payload, "info", "total_token_usage")),
        ...readRateLimits(membersAt(payload, "rate_limits")),
      ];
    // Written as soon as the model has answered. A token_count comes only after the tools that the model called. If the program is
    // killed in between, only this sum survives a resume: a token_count and the stream continue from the turn before.
    case "token_usage_record":
      return readUsage(membersAt(payload, "thread_token_usage"), "kept");
    case "compacted":
      return [{ fact: "compacted" }];
    case "response_item":
      return REFUSED.test(textOf(payload["output"]))
        ? [{ fact: "tool_denied", name: "command_execution" }]
        : [];
    default:
      return [];
  }
}
