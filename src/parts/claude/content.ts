/** Reads the messages of Claude Code: texts, tool calls and their results. */
import type { Fact } from "../../agents/stream/facts.ts";
import { type Json, objectAt, objectsAt, textAt } from "./fields.ts";

export function isOfSubagent(line: Json): boolean {
  return textAt(line, "parent_tool_use_id") !== undefined;
}

/** A line of type "assistant". The text of a subagent is a notice, not the answer. */
export function saidBy(line: Json): Fact[] {
  const isSubagent = isOfSubagent(line);
  const facts: Fact[] = [];
  for (const block of objectsAt(objectAt(line, "message") ?? {}, "content")) {
    const text = textAt(block, "text");
    const thought = textAt(block, "thinking");
    const id = textAt(block, "id");
    if (text !== undefined) facts.push({ fact: isSubagent ? "notice" : "said", text });
    else if (thought !== undefined) facts.push({ fact: "thought", text: thought });
    else if (id !== undefined && textAt(block, "type")?.endsWith("tool_use") === true)
      facts.push({
        fact: "tool_started",
        id,
        name: textAt(block, "name") ?? "",
        input: JSON.stringify(block["input"] ?? null),
      });
  }
  return facts;
}

/** A line of type "user" that is not one of our messages: the results of tool calls. */
export function toolResults(line: Json): Fact[] {
  const facts: Fact[] = [];
  for (const block of objectsAt(objectAt(line, "message") ?? {}, "content")) {
    const id = textAt(block, "tool_use_id");
    if (id === undefined) continue;
    const isError = block["is_error"] === true;
    const output = outputOf(block);
    facts.push({ fact: "tool_ended", id, output, exitCode: exitCodeOf(output, isError), isError });
    if (!isError) facts.push(...fileChanged(objectAt(line, "tool_use_result") ?? {}));
  }
  return facts;
}

/** The text of a message that we sent, from the line in which claude repeats it. */
export function askedIn(line: Json): string {
  return outputOf(objectAt(line, "message") ?? {});
}

function outputOf(block: Json): string {
  const content = textAt(block, "content");
  if (content !== undefined) return content;
  return objectsAt(block, "content")
    .map((part) => textAt(part, "text") ?? "")
    .join("\n");
}

/** claude reports a command's exit code only in a fixed text, and only when it is not 0. */
function exitCodeOf(output: string, isError: boolean): number | null {
  const told = isError ? /^(?:Error: )?Exit code (\d{1,3})\b/.exec(output)?.[1] : undefined;
  return told === undefined ? null : Number(told);
}

/** Only tools that write report a patch. Tools that read report the path in another member. */
function fileChanged(result: Json): Fact[] {
  const path = textAt(result, "filePath");
  if (path === undefined || !Array.isArray(result["structuredPatch"])) return [];
  return [{ fact: "file_changed", path, change: textAt(result, "type") ?? "update" }];
}
