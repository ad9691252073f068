/** Adds a dependency to an item or removes one, in the notation that its list already uses. */
import { isMap, isScalar, isSeq, type Node } from "yaml";
import { foldId } from "../../../core/names.ts";
import type { NodeDependency } from "../../../core/roadmap.ts";
import type { Draft } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import type { ItemText } from "./item-text.ts";
import { takeOver } from "./set-field.ts";
import { setKey } from "./set-key.ts";
import { textsOf } from "./shape.ts";
import { dashColumn, endOfLine } from "./text-lines.ts";

export function addDependency(
  draft: Draft,
  id: string,
  on: string,
  required: NodeDependency["required"],
): void {
  const before = draft.node(id).dependencies.find((one) => foldId(one.id) === foldId(on));
  if (before?.required === required) return;
  if (before !== undefined) removeDependency(draft, id, on);
  const fresh = required === "done" ? on : { id: on, required_status: required };
  const { item, key, list, values } = dependenciesOf(draft, id);
  const wanted = [...values, fresh];
  const last = isSeq(list) && list.anchor === undefined ? (list.items.at(-1) as Node) : undefined;
  if (last === undefined) setKey(item, key, wanted);
  else {
    const { start, end } = item.spanOf(last);
    if (isFlow(list)) item.insert(end, `, ${renderFlow(fresh)}`);
    else {
      const column = dashColumn(item.text, start);
      if (column < 0) item.refuse(key);
      item.addLine(end, column, `- ${renderFlow(fresh)}`);
    }
    item.check(key, wanted);
  }
  takeOver(draft, item, key, "dependencies");
}

export function removeDependency(draft: Draft, id: string, on: string): void {
  const isGone = (value: unknown): boolean => foldId(idOfDependency(value)) === foldId(on);
  if (!draft.node(id).dependencies.some((one) => isGone(one.id))) return;
  const { item, key, list, values } = dependenciesOf(draft, id);
  const kept = values.filter((one) => !isGone(one));
  const index = values.findIndex(isGone);
  if (index < 0) item.refuse("dependencies");
  if (isSeq(list) && values.length - kept.length === 1 && kept.length > 0) {
    const items = list.items as Node[];
    const { start, end } = item.spanOf(items[index] as Node);
    if (isFlow(list)) {
      const next = items[index + 1]?.range?.[0];
      const from = next === undefined ? (items[index - 1]?.range?.[1] ?? start) : start;
      item.replace({ start: from, end: next ?? end }, "");
    } else {
      const lineStart = item.text.lastIndexOf("\n", start) + 1;
      if (lineStart === 0 || dashColumn(item.text, start) < 0) item.refuse(key);
      // Cuts from the end of the previous line to the end of this one: the last line of a file may have no line end.
      const from = lineStart - (item.text[lineStart - 2] === "\r" ? 2 : 1);
      item.replace({ start: from, end: endOfLine(item.text, end) }, "");
    }
    item.check(key, kept);
  } else setKey(item, key, kept);
  takeOver(draft, item, key, "dependencies");
}

/** The key of an item's dependencies, what the file has there, and the same as a list of plain values, even if it is a single value. */
function dependenciesOf(
  draft: Draft,
  id: string,
): { item: ItemText; key: string; list: unknown; values: unknown[] } {
  const item = draft.itemOf(draft.node(id), "dependencies");
  const isOther = item.find("dependencies") === undefined && item.find("depends_on") !== undefined;
  const key = isOther ? "depends_on" : "dependencies";
  const list = item.find(key)?.value;
  const found = isSeq(list) || isMap(list) || isScalar(list) ? textsOf(list) : undefined;
  const values =
    found === undefined || found === null ? [] : Array.isArray(found) ? found : [found];
  return { item, key, list, values };
}

function isFlow(list: unknown): boolean {
  return isSeq(list) && list.flow === true;
}

function idOfDependency(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const { id, node } = value as { id?: unknown; node?: unknown };
  return String(id ?? node);
}
