/** Changes members of a JSON object in its text, and leaves all others as they were written, digit for digit. */
import { scanObject } from "./json.ts";
import { FREE_MEMBERS } from "./task-codec.ts";

/**
 * @param members the new values; a member that is undefined is removed
 * @throws JsonFault when the bytes hold no JSON object
 */
export function withMembers(bytes: Buffer, members: Readonly<Record<string, unknown>>): string {
  const { text, spans } = scanObject(bytes, FREE_MEMBERS);
  const kept = [...spans].flatMap(([name, [from, to]]) =>
    Object.hasOwn(members, name) ? [] : [`${JSON.stringify(name)}:${text.slice(from, to)}`],
  );
  const set = Object.entries(members).flatMap(([name, value]) =>
    value === undefined ? [] : [`${JSON.stringify(name)}:${JSON.stringify(value)}`],
  );
  return `{${[...set, ...kept].join(",")}}\n`;
}

/** The same value over several lines, for a person. A text that has lines already is returned as it is. */
export function inLines(text: string): string {
  if (text.trim().includes("\n")) return text.endsWith("\n") ? text : `${text}\n`;
  let out = "";
  let depth = 0;
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const newLine = (): string => `\n${"  ".repeat(depth)}`;
  for (const [index, part] of parts.entries()) {
    const next = parts[index + 1];
    if (part === "{" || part === "[") {
      depth++;
      out += part + (next === "}" || next === "]" ? "" : newLine());
    } else if (part === "}" || part === "]") {
      depth--;
      const before = parts[index - 1];
      out += (before === "{" || before === "[" ? "" : newLine()) + part;
    } else if (part === ",") out += part + newLine();
    else out += part === ":" ? ": " : part;
  }
  return `${out}\n`;
}
