/** Adds a new node as one line at the end of the list `nodes`, and creates that list if it is missing. */
import { isMap, isSeq } from "yaml";
import { ErrTaskExists } from "../../../core/errors.ts";
import type { NodeDependency } from "../../../core/roadmap.ts";
import { columnOf, findNode, parseRoadmap, type Span } from "../read/document.ts";
import { decodeItem } from "../read/item.ts";
import type { Draft } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import { LonelyItem, parseAlone, refuse } from "./one-item.ts";
import { sameShape } from "./shape.ts";
import { endOfLine, findDash, newlineAt, skipBlankLines } from "./text-lines.ts";

/** Properties of a node in memory that the file writes differently or not at all. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  "section",
  "order",
  "line",
  "col",
  "max_attempts",
]);

/** A node to add, with the keys of the file in the order in which they are written. */
export interface NewNode {
  id: string;
  [key: string]: unknown;
}

export function addNode(draft: Draft, given: NewNode): void {
  const id = given.id;
  if (findNode(draft, id) !== undefined)
    throw new ErrTaskExists(`the roadmap has a node ${id} already`, {
      id,
      phase: "edit",
      hint: "choose another id",
    });
  const rendered = renderFlow(asItem(given));
  const map = parseAlone(rendered);
  if (!isMap(map)) refuse(id, "the item");
  const source = new LonelyItem();
  const decoded = decodeItem(map, source, {
    section: "nodes",
    type: "task",
    order: draft.nodes.length,
  });
  source.throwFault(id);
  if (decoded === undefined) refuse(id, "the item");
  const list = draft.nodesList;
  const start =
    list.kind === "block"
      ? appendToBlock(draft, rendered, id)
      : list.kind === "flow"
        ? appendToFlow(draft, rendered, id)
        : startList(draft, rendered, id);
  draft.insertNode(decoded.node, { start, end: start + rendered.length }, start + decoded.marks.id);
}

/** The item with the keys of the file: id, type, status and title first. */
function asItem(node: NewNode): Record<string, unknown> {
  const { id, type = "task", title, status = "open", ...rest } = node;
  const item: Record<string, unknown> = { id, type, status, title };
  for (const [key, value] of Object.entries(rest)) if (!NOT_WRITTEN.has(key)) item[key] = value;
  if (rest["max_attempts"] !== undefined)
    item["retry_policy"] = { max_attempts: rest["max_attempts"] };
  if (Array.isArray(rest["dependencies"]))
    item["dependencies"] = rest["dependencies"].map((one: unknown) => {
      const { id: on, required } = (one ?? {}) as Partial<NodeDependency>;
      if (on === undefined || required === undefined) return one;
      return required === "done" ? on : { id: on, required_status: required };
    });
  return item;
}

function appendToBlock(draft: Draft, rendered: string, id: string): number {
  const last = draft.nodesList.last as Span;
  const { text } = draft;
  const dash = findDash(text, last.start);
  if (dash < 0) return refuse(id, "the list `nodes`");
  const column = columnOf(text, dash);
  // Blank lines after the last item may belong to a block text that keeps them (`|+`).
  const keepsBlanks = /[|>]\d?\+/.test(text.slice(last.start, last.end));
  const lineEnd = endOfLine(text, last.end);
  const at = keepsBlanks ? skipBlankLines(text, lineEnd) : lineEnd;
  const newline = newlineAt(text, lineEnd);
  const isLineStart = at > 0 && text[at - 1] === "\n";
  const head = `${" ".repeat(column)}- `;
  const insert = isLineStart ? `${head}${rendered}${newline}` : `${newline}${head}${rendered}`;
  const before = parseAlone(`${" ".repeat(column)}${text.slice(dash, at)}`);
  draft.splice({ start: at, end: at }, insert);
  const after = parseAlone(`${" ".repeat(column)}${draft.text.slice(dash, at + insert.length)}`);
  if (
    !isSeq(before) ||
    !isSeq(after) ||
    after.items.length !== before.items.length + 1 ||
    !before.items.every((item, i) => sameShape(item, after.items[i])) ||
    !sameShape(after.items.at(-1), parseAlone(rendered))
  )
    return refuse(id, "the list `nodes`");
  return at + insert.indexOf(rendered);
}

function appendToFlow(draft: Draft, rendered: string, id: string): number {
  const { start, end } = draft.nodesList.last as Span;
  draft.splice({ start: end, end }, `, ${rendered}`);
  const whole = parseAlone(`[${draft.text.slice(start, end + 2 + rendered.length)}]`);
  if (!isSeq(whole) || whole.items.length !== 2 || !sameShape(whole.items[1], parseAlone(rendered)))
    return refuse(id, "the list `nodes`");
  return end + 2;
}

/** Writes the first item: `nodes:` is empty or missing. */
function startList(draft: Draft, rendered: string, id: string): number {
  const { kind, colonEnd, value, indent } = draft.nodesList;
  if (kind === "unusable") return refuse(id, "the file");
  const before = draft.text;
  const pad = " ".repeat(indent);
  let start: number;
  if (kind === "empty" && colonEnd !== undefined) {
    if (value !== undefined) {
      // Removes the empty value and the spaces before it.
      const from = colonEnd + before.slice(colonEnd, value.start).trimEnd().length;
      draft.splice({ start: from, end: value.end }, "");
    }
    const at = endOfLine(draft.text, colonEnd);
    const head = `${newlineAt(draft.text, at)}${pad}  - `;
    draft.splice({ start: at, end: at }, `${head}${rendered}`);
    start = at + head.length;
  } else {
    const newline = newlineAt(before, before.length);
    const isOpen = before.length > 0 && before !== "\ufeff" && !before.endsWith("\n");
    const head = `${isOpen ? newline : ""}${pad}nodes:${newline}${pad}  - `;
    draft.splice({ start: before.length, end: before.length }, `${head}${rendered}${newline}`);
    start = before.length + head.length;
  }
  // The text around the list may change what the new lines mean, so the whole text is read again. This is slow, but rare.
  const after = parseRoadmap(draft.text);
  const ids = after.nodes.map((node) => node.id).filter((one) => one !== id);
  if (
    after.nodesList.kind !== "block" ||
    after.nodes.length !== draft.nodes.length + 1 ||
    ids.join(" ") !== draft.nodes.map((node) => node.id).join(" ")
  )
    return refuse(id, "the file");
  draft.nodesList = { kind: "block", indent };
  return start;
}
