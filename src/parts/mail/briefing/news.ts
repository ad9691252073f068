/** Writes the news for an agent that is woken: why it was woken, and the state of the tasks of its tree and its scope. Pure. */
import { cut, safe } from "../../../text/render.ts";
import type { WakeRecord } from "../store/wake-log.ts";
import { fitting } from "./standing.ts";

/** Tasks in one state. */
export interface TaskGroup {
  /** One line for each task that was read. */
  lines: readonly string[];
  /** How many tasks there are. If `isExact` is false, there may be more. */
  count: number;
  isExact: boolean;
  /** A command that shows all of them. */
  command: string;
}

const LINE_CHARS_MAX = 160;
const NAMED_MAX = 5;

/** The text of the line for a task. */
export function taskLine(id: string, state: string, what: string): string {
  const text = what === "" ? `${id}: ${state}` : `${id}: ${state}: ${what}`;
  return cut(`- ${safe(text)}`, LINE_CHARS_MAX);
}

/**
 * @param groups the most important one first
 * @param since the ended tasks in the groups ended after this time (ISO 8601); null: the agent was not woken before
 * @param bytesMax limit for the whole text
 */
export function newsText(
  wake: WakeRecord | undefined,
  groups: readonly TaskGroup[],
  since: string | null,
  bytesMax: number,
): string {
  const some = groups.filter(({ count }) => count > 0);
  const ended = since === null ? "" : `, with those that have ended since ${since}`;
  const text = [
    ...(wake === undefined ? [] : [whyText(wake)]),
    some.length === 0 ? `There are no tasks here${ended}.` : `The tasks here${ended}:`,
  ];
  // Each group may need a line about its remaining tasks.
  const restBytes = some.map((group) => Buffer.byteLength(restLine(group, group.count)) + 1);
  let left = restBytes.reduce((sum, bytes) => sum - bytes, bytesMax);
  left -= Buffer.byteLength(text.join("\n")) + 1;
  if (left < 0) return "";
  for (const group of some) {
    const shown = group.lines.slice(0, fitting(group.lines, left));
    left -= shown.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    text.push(...shown);
    const more = group.count - shown.length;
    if (more > 0 || !group.isExact) text.push(restLine(group, more));
  }
  return text.join("\n");
}

function restLine({ isExact, command }: TaskGroup, more: number): string {
  return `- ${more}${isExact ? "" : " or more"} others: \`${command}\``;
}

function whyText({ from, ids, hops, is_self: isSelf }: WakeRecord): string {
  const who = isSelf ? "yourself" : named(from);
  const chain = hops === 0 ? "" : `; ${hops} wake-ups led to it, and no person spoke in between`;
  return `You were woken by mail of ${who} (${named(ids)})${chain}.`;
}

function named(names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  return `${names.slice(0, NAMED_MAX).map(safe).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
