/**
 * Reads the lines of `codex exec --json`. Pure. Only `turn.completed` and `turn.failed` end a turn; a line `error` may be about a
 * request that the program tries again. Rule: docs/agents.md.
 */
import type { Fact, ReadLine } from "../../agents/stream/facts.ts";
import {
  type JsonMembers,
  membersAt,
  readObjectLine,
  textOf,
} from "../../agents/stream/json-values.ts";
import { readSessionId } from "../../agents/stream/read-values.ts";
import { endTurn, faultOfMessage, messageOfError, statusOfMessage } from "./fault.ts";
import { ItemReader } from "./item-facts.ts";
import { readUsage } from "./usage.ts";

const RETRY = /^reconnecting\b/i;

/** A reader for one run. */
export function newCodexExecReader(): ReadLine {
  const items = new ItemReader();
  let hasThread = false;
  return (line) => {
    const event = readObjectLine(line);
    if (event === undefined) return [{ fact: "unknown", type: "no JSON" }];
    const id = event["type"] === "thread.started" ? readSessionId(event["thread_id"]) : undefined;
    // Only the first thread is that of the task.
    if (id === undefined || hasThread) return readEvent(event, items);
    hasThread = true;
    return [{ fact: "session", id }];
  };
}

function readEvent(event: JsonMembers, items: ItemReader): Fact[] {
  const type = textOf(event["type"]);
  switch (type) {
    case "turn.started":
      return [{ fact: "turn_started" }];
    case "turn.completed":
      items.forget();
      return [...readUsage(membersAt(event, "usage")), endTurn(undefined, "")];
    case "turn.failed": {
      items.forget();
      const message = messageOfError(membersAt(event, "error"));
      return [...readUsage(membersAt(event, "usage")), endTurn(faultOfMessage(message), message)];
    }
    case "item.started":
      return items.read("started", membersAt(event, "item"));
    case "item.updated":
      return items.read("updated", membersAt(event, "item"));
    case "item.completed":
      return items.read("completed", membersAt(event, "item"));
    case "error":
      return [readError(messageOfError(event))];
    case "context_compacted":
      return [{ fact: "compacted" }];
    default:
      return [{ fact: "unknown", type: type || "no type" }];
  }
}

function readError(text: string): Fact {
  return RETRY.test(text)
    ? { fact: "api_retry", status: statusOfMessage(text), delayMs: null, text }
    : { fact: "notice", text };
}
