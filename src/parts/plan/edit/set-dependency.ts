/** Adds a dependency to an item or removes one, in the notation that its list already uses. */
import { isMap, isScalar, isSeq, type Node, type YAMLMap } from "yaml";
import { foldId } from "../../../core/names.ts";
import type { NodeDependency, RoadmapNode } from "../../../core/roadmap.ts";
import type { Draft } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import { findPair, getNode, readItem, refuse, takeOver, verifyItem } from "./one-item.ts";
import { setKey } from "./set-key.ts";
import { textsOf } from "./shape.ts";
import { dashColumn, endOfLine, newlineAt, trimEnd } from "./text-lines.ts";

export function addDependency(
  draft: Draft,
  node: RoadmapNode,
  on: string,
  required: NodeDependency["required"],
): void {
  const wanted = foldId(on);
  const before = node.dependencies.find((one) => foldId(one.id) === wanted);
  if (before?.required === required) return;
  if (before !== undefined) removeDependency(draft, node, on);
  const fresh = required === "done" ? on : { id: on, required_status: required };
  const now = getNode(draft, node.id);
  const { item, map } = readItem(draft, now, "dependencies");
  const key = dependencyKey(map);
  const pair = findPair(map, key);
  const list = pair?.value;
  const old = dependencyValues(list);
  const last = isSeq(list) ? (list.items.at(-1) as Node | undefined) : undefined;
  if (isSeq(list) && last !== undefined && list.anchor === undefined) {
    const end = trimEnd(item.text, last.range?.[0] ?? 0, last.range?.[1] ?? 0);
    if (list.flow === true) draft.splice(item.toOuter(end, end), `, ${renderFlow(fresh)}`, now);
    else {
      const outer = item.toOuter(end, end).start;
      const lineEnd = endOfLine(draft.text, outer);
      const indent = dashColumn(item.text, last.range?.[0] ?? 0);
      if (indent < 0) refuse(node.id, key);
      const line = `${newlineAt(draft.text, lineEnd)}${" ".repeat(indent)}- ${renderFlow(fresh)}`;
      draft.splice({ start: lineEnd, end: lineEnd }, line, now);
    }
    const after = verifyItem(draft, node.id, map, key, [...old, fresh]);
    takeOver(draft, node, after, key, "dependencies");
    return;
  }
  const value = [...old, fresh];
  const after = setKey(draft, now, key, renderFlow(value), value);
  takeOver(draft, node, after, key, "dependencies");
}

export function removeDependency(draft: Draft, node: RoadmapNode, on: string): void {
  const wanted = foldId(on);
  if (!node.dependencies.some((one) => foldId(one.id) === wanted)) return;
  const { item, map } = readItem(draft, node, "dependencies");
  const key = dependencyKey(map);
  const list = findPair(map, key)?.value;
  const old = dependencyValues(list);
  const kept = old.filter((one) => foldId(idOfDependency(one)) !== wanted);
  const index = old.findIndex((one) => foldId(idOfDependency(one)) === wanted);
  if (index < 0) refuse(node.id, "dependencies");
  const gone = isSeq(list) ? (list.items[index] as Node) : undefined;
  if (isSeq(list) && gone !== undefined && old.length - kept.length === 1 && kept.length > 0) {
    const start = gone.range?.[0] ?? 0;
    const end = trimEnd(item.text, start, gone.range?.[1] ?? 0);
    if (list.flow === true) {
      const next = list.items[index + 1] as Node | undefined;
      const previous = list.items[index - 1] as Node | undefined;
      const span =
        next !== undefined
          ? { start, end: next.range?.[0] ?? end }
          : { start: previous?.range?.[1] ?? start, end };
      draft.splice(item.toOuter(span.start, span.end), "", node);
    } else {
      const lineStart = item.text.lastIndexOf("\n", start) + 1;
      const from = lineStart === 0 ? -1 : lineStart;
      if (from < 0 || dashColumn(item.text, start) < 0) refuse(node.id, key);
      // Cuts from the end of the previous line to the end of this one: the last line of a file may have no line end.
      const before = item.text[from - 2] === "\r" ? from - 2 : from - 1;
      draft.splice(item.toOuter(before, endOfLine(item.text, end)), "", node);
    }
    const after = verifyItem(draft, node.id, map, key, kept);
    takeOver(draft, node, after, key, "dependencies");
    return;
  }
  const after = setKey(draft, node, key, renderFlow(kept), kept);
  takeOver(draft, node, after, key, "dependencies");
}

function dependencyKey(map: YAMLMap): string {
  return findPair(map, "dependencies") === undefined && findPair(map, "depends_on") !== undefined
    ? "depends_on"
    : "dependencies";
}

/** The dependencies as a list of plain values, even if the file has a single value. */
function dependencyValues(list: unknown): unknown[] {
  const value = isSeq(list) || isMap(list) || isScalar(list) ? textsOf(list) : undefined;
  return value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
}

function idOfDependency(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const { id, node } = value as { id?: unknown; node?: unknown };
  return String(id ?? node);
}
