/** Writes the value of one key of an item. All other text stays byte for byte. */
import type { Node, Pair } from "yaml";
import { keyOf } from "../read/yaml-text.ts";
import { renderFlow } from "./flow-text.ts";
import { type ItemText, spanOfPair } from "./item-text.ts";
import { endOfLine, trimEnd } from "./text-lines.ts";

/** Writes `key: value` into an item: over the old value, or as a new pair. */
export function setKey(item: ItemText, key: string, value: unknown): void {
  const pair = item.find(key);
  if (pair === undefined) insertKey(item, key, renderFlow(value));
  else replaceValue(item, pair, key, renderFlow(value));
  item.check(key, value);
}

function replaceValue(item: ItemText, pair: Pair, key: string, rendered: string): void {
  const { text } = item;
  const colonEnd = text.indexOf(":", (pair.key as Node).range?.[1] ?? 0) + 1;
  const old = pair.value as (Node & { anchor?: string }) | null;
  const [start = colonEnd, rawEnd = colonEnd] = old?.range ?? [];
  if (old?.anchor !== undefined) item.refuse(key);
  const end = trimEnd(text, start, rawEnd);
  if (old === null || end <= start) item.insert(colonEnd, ` ${rendered}`);
  else if (text.slice(colonEnd, start).includes("\n")) {
    // The old value is a block below its key. The new one is written behind the colon, so that a comment on that line stays.
    item.replace({ start: endOfLine(text, colonEnd), end }, "");
    item.insert(colonEnd, ` ${rendered}`);
  } else item.replace({ start, end }, keepQuotes(text[start], rendered));
}

/** Keeps the quotes that a person wrote: `"open"` becomes `"done"`. */
function keepQuotes(quote: string | undefined, rendered: string): string {
  return (quote === '"' || quote === "'") && /^[a-z_]+$/.test(rendered)
    ? `${quote}${rendered}${quote}`
    : rendered;
}

function insertKey(item: ItemText, key: string, rendered: string): void {
  const pairs = item.map.items as Pair[];
  let behind = pairs.findIndex((pair) => keyOf(pair) === "id");
  if (behind < 0) item.refuse(key);
  if (item.map.flow === true) {
    if (key !== "status" && !item.hasHoles) behind = pairs.length - 1;
    item.insert(spanOfPair(pairs[behind]).end, `, ${key}: ${rendered}`);
    return;
  }
  // The new key is written after the id, or after the one-line keys that follow it, and never into a block.
  if (key !== "status") while (isOneLine(item.text, pairs[behind + 1])) behind++;
  item.addLine(spanOfPair(pairs[behind]).end, item.indent, `${key}: ${rendered}`);
}

function isOneLine(text: string, pair: Pair | undefined): boolean {
  if (pair === undefined || keyOf(pair) === "tasks" || keyOf(pair) === "milestones") return false;
  const { start, end } = spanOfPair(pair);
  return end > start && !text.slice(start, end).includes("\n");
}
