/** Writes the value of one key of an item. All other text stays byte for byte. */
import type { Node, Pair, YAMLMap } from "yaml";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { keyOf } from "../read/yaml-text.ts";
import type { Draft, ItemText } from "./draft.ts";
import { findPair, rangeOfPair, readItem, refuse, verifyItem } from "./one-item.ts";
import { endOfLine, newlineAt, trimEnd } from "./text-lines.ts";

/** Writes `key: rendered` into an item: over the old value, or as a new pair. Checks that the key then reads as `value`. */
export function setKey(
  draft: Draft,
  node: RoadmapNode,
  key: string,
  rendered: string,
  value: unknown,
): YAMLMap {
  const { item, map } = readItem(draft, node, key);
  const pair = findPair(map, key);
  if (pair === undefined) insertKey(draft, node, item, map, key, rendered);
  else replaceValue(draft, node, item, pair, key, rendered);
  return verifyItem(draft, node.id, map, key, value);
}

function replaceValue(
  draft: Draft,
  node: RoadmapNode,
  item: ItemText,
  pair: Pair,
  key: string,
  rendered: string,
): void {
  const keyEnd = (pair.key as Node).range?.[1] ?? 0;
  const colonEnd = item.text.indexOf(":", keyEnd) + 1;
  const old = pair.value as (Node & { anchor?: string; flow?: boolean }) | null;
  const [start = colonEnd, rawEnd = colonEnd] = old?.range ?? [];
  if (old !== null && "anchor" in old && old.anchor !== undefined) refuse(node.id, key);
  const end = trimEnd(item.text, start, rawEnd);
  if (old === null || end <= start) {
    draft.splice(item.toOuter(colonEnd, colonEnd), ` ${rendered}`, node);
    return;
  }
  const between = item.text.slice(colonEnd, start);
  if (!between.includes("\n")) {
    draft.splice(item.toOuter(start, end), keepQuotes(item.text.slice(start, end), rendered), node);
    return;
  }
  // The old value is a block below its key. The new one is written behind the colon, so that a comment on that line stays.
  const lineEnd = endOfLine(item.text, colonEnd);
  draft.splice(item.toOuter(lineEnd, end), "", node);
  draft.splice(item.toOuter(colonEnd, colonEnd), ` ${rendered}`, node);
}

/** Keeps the quotes that a person wrote: `"open"` becomes `"done"`. */
function keepQuotes(old: string, rendered: string): string {
  const quote = old[0];
  return (quote === '"' || quote === "'") && /^[a-z_]+$/.test(rendered)
    ? `${quote}${rendered}${quote}`
    : rendered;
}

function insertKey(
  draft: Draft,
  node: RoadmapNode,
  item: ItemText,
  map: YAMLMap,
  key: string,
  rendered: string,
): void {
  const pairs = map.items as Pair[];
  const idAt = pairs.findIndex((pair) => keyOf(pair) === "id");
  if (idAt < 0) refuse(node.id, key);
  if (map.flow === true) {
    const behind = key === "status" || item.hasHoles ? idAt : pairs.length - 1;
    const { end } = rangeOfPair(pairs[behind]);
    draft.splice(item.toOuter(end, end), `, ${key}: ${rendered}`, node);
    return;
  }
  // The new key is written after the id, or after the one-line keys that follow it, and never into a block.
  let behind = idAt;
  if (key !== "status") while (isOneLine(item.text, pairs[behind + 1])) behind++;
  const { end } = rangeOfPair(pairs[behind]);
  const outer = item.toOuter(end, end).start;
  const lineEnd = endOfLine(draft.text, outer);
  const line = `${newlineAt(draft.text, lineEnd)}${" ".repeat(item.indent)}${key}: ${rendered}`;
  draft.splice({ start: lineEnd, end: lineEnd }, line, node);
}

function isOneLine(text: string, pair: Pair | undefined): boolean {
  if (pair === undefined || keyOf(pair) === "tasks" || keyOf(pair) === "milestones") return false;
  const { start, end } = rangeOfPair(pair);
  return end > start && !text.slice(start, end).includes("\n");
}
