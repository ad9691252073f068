/**
 * Reads an item of a turn: a command, a change of files, a text of the model. `codex exec` writes its names with underscores
 * (`command_execution`, `exit_code`), the app-server in camelCase; both are read here. Pure.
 */
import type { Fact } from "../../agents/stream/facts.ts";
import {
  asText,
  isObject,
  type JsonMembers,
  listOf,
  numberOf,
  textOf,
} from "../../agents/stream/json-values.ts";

export type ItemPhase = "started" | "updated" | "completed";

/** Reads the items of one thread; remembers which tool calls run. */
export class ItemReader {
  private readonly open = new Set<string>();

  read(phase: ItemPhase, item: JsonMembers): Fact[] {
    const type = textOf(item["type"]).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const tool = toolOf(type, item);
    if (tool !== undefined) return this.readTool(phase, item, tool);
    return readWords(phase, type, item) ?? [{ fact: "unknown", type: `item.${phase} ${type}` }];
  }

  /** Called when a turn has ended. All its tool calls have ended, too. */
  forget(): void {
    this.open.clear();
  }

  private readTool(phase: ItemPhase, item: JsonMembers, { name, input, output }: Tool): Fact[] {
    if (phase === "updated") return [];
    const id = textOf(item["id"]);
    const facts: Fact[] = [];
    // Some calls are reported only when they are over.
    if (!this.open.has(id)) facts.push({ fact: "tool_started", id, name, input });
    if (phase === "started") {
      this.open.add(id);
      return facts;
    }
    this.open.delete(id);
    const status = textOf(item["status"]);
    const isError = status === "failed" || status === "declined";
    const exitCode = numberOf(item["exit_code"] ?? item["exitCode"]);
    facts.push({ fact: "tool_ended", id, output, exitCode, isError });
    if (status === "declined") facts.push({ fact: "tool_denied", name });
    if (name === "file_change" && !isError) facts.push(...readChanges(item));
    return facts;
  }
}

interface Tool {
  name: string;
  input: string;
  output: string;
}

/** Undefined when it is no tool call. */
function toolOf(type: string, item: JsonMembers): Tool | undefined {
  switch (type) {
    case "command_execution": {
      const output = asText(item["aggregated_output"] ?? item["aggregatedOutput"]);
      return { name: type, input: asText(item["command"]), output };
    }
    case "file_change":
      return { name: type, input: pathsOf(item).join("\n"), output: "" };
    case "mcp_tool_call": {
      const name = `${textOf(item["server"])}.${textOf(item["tool"])}`;
      return { name, input: asText(item["arguments"]), output: outputOf(item) };
    }
    case "dynamic_tool_call": {
      const output = asText(item["contentItems"]);
      return { name: textOf(item["tool"]), input: asText(item["arguments"]), output };
    }
    case "collab_tool_call":
    case "collab_agent_tool_call":
      return { name: textOf(item["tool"]) || type, input: asText(item["prompt"]), output: "" };
    case "web_search":
      return { name: type, input: asText(item["query"]), output: "" };
    default:
      return undefined;
  }
}

/** Undefined when we do not know the type of the item. */
function readWords(phase: ItemPhase, type: string, item: JsonMembers): Fact[] | undefined {
  const isDone = phase === "completed";
  switch (type) {
    case "agent_message":
      return isDone ? [{ fact: "said", text: textOf(item["text"]) }] : [];
    case "reasoning":
      return isDone ? [{ fact: "thought", text: thoughtOf(item) }] : [];
    case "error":
      return isDone ? [{ fact: "notice", text: textOf(item["message"]) }] : [];
    case "plan":
      return isDone ? [{ fact: "notice", text: textOf(item["text"]) }] : [];
    case "todo_list":
      return phase === "updated" ? [] : [{ fact: "notice", text: todoOf(item) }];
    case "context_compaction":
    case "compaction":
      return phase === "updated" ? [] : [{ fact: isDone ? "compacted" : "compacting" }];
    // A receipt for one of our messages. `AppServerReader` reads it.
    case "user_message":
      return [];
    default:
      return undefined;
  }
}

function readChanges(item: JsonMembers): Fact[] {
  return listOf(item["changes"])
    .filter(isObject)
    .map(({ path, kind }) => ({
      fact: "file_changed",
      path: textOf(path),
      change: isObject(kind) ? textOf(kind["type"]) : textOf(kind),
    }));
}

function pathsOf(item: JsonMembers): string[] {
  return listOf(item["changes"])
    .filter(isObject)
    .map(({ path }) => textOf(path));
}

function outputOf(item: JsonMembers): string {
  const error = item["error"];
  if (isObject(error)) return asText(error["message"] ?? error);
  return asText(error) || asText(item["result"]);
}

function thoughtOf(item: JsonMembers): string {
  const parts = [...listOf(item["summary"]), ...listOf(item["content"])];
  return textOf(item["text"]) || parts.map(asText).join("\n");
}

function todoOf(item: JsonMembers): string {
  return listOf(item["items"])
    .filter(isObject)
    .map(({ text, completed }) => `${completed === true ? "[x]" : "[ ]"} ${textOf(text)}`)
    .join("\n");
}
