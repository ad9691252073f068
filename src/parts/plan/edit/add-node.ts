/** Adds a new node as one line at the end of the list `nodes`, and creates that list if it is missing. */
import { isMap, isSeq } from "yaml";
import { ErrTaskExists } from "../../../core/errors.ts";
import type { NodeDependency, RoadmapNode } from "../../../core/roadmap.ts";
import {
  columnOf,
  findNode,
  parseRoadmap,
  type RoadmapDocument,
  type Span,
} from "../read/document.ts";
import { ordersOf } from "../rules/belonging.ts";
import { moveSpan } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import { decodeAlone, parseAlone, refuse } from "./read-alone.ts";
import { sameShape } from "./shape.ts";
import { endOfLine, findDash, newlineAt, skipBlankLines } from "./text-lines.ts";

/** Properties of a node in memory that the file writes differently or not at all. */
const NOT_WRITTEN: ReadonlySet<string> = new Set(["section", "order", "max_attempts"]);

/** A node to add, with the keys of the file in the order in which they are written. */
export interface NewNode {
  id: string;
  [key: string]: unknown;
}

export function addNode(doc: RoadmapDocument, given: NewNode): RoadmapDocument {
  const { id } = given;
  if (findNode(doc, id) !== undefined)
    throw new ErrTaskExists(`the roadmap has a node ${id} already`, {
      id,
      phase: "edit",
      hint: "choose another id",
    });
  const rendered = renderFlow(asItem(given));
  const map = parseAlone(rendered);
  if (!isMap(map)) refuse(id, "the item");
  const place = { section: "nodes", type: "task", order: doc.nodes.length } as const;
  const decoded = decodeAlone(map, id, place);
  if (decoded === undefined) refuse(id, "the item");
  const { kind, last } = doc.nodesList;
  if (last === undefined) return startList(doc, rendered, id);
  const behind = kind === "block" ? behindBlock : behindFlow;
  const [at, insert] = behind(doc.text, last, rendered) ?? refuse(id, "the list `nodes`");
  const start = at + insert.indexOf(rendered);
  const { spans, ids, holes } = doc.places;
  const move = (place: number): number => (place > at ? place + insert.length : place);
  let order = doc.nodes.length;
  while (order > 0 && (spans[2 * order - 2] as number) > at) order--;
  const nodes = doc.nodes.toSpliced(order, 0, decoded.node);
  for (let i = order; i < nodes.length; i++) nodes[i] = { ...(nodes[i] as RoadmapNode), order: i };
  const moved = [...holes].map(
    ([of, lists]) => [of >= order ? of + 1 : of, lists.map((one) => moveSpan(one, move))] as const,
  );
  const span = { start, end: start + rendered.length };
  return {
    ...doc,
    text: doc.text.slice(0, at) + insert + doc.text.slice(at),
    nodes,
    orders: ordersOf(nodes),
    places: {
      spans: insertAt(spans.map(move), 2 * order, [span.start, span.end]),
      ids: insertAt(ids.map(move), order, [start + decoded.marks.id]),
      holes: new Map(moved),
    },
    nodesList: { ...doc.nodesList, last: span },
  };
}

function insertAt(array: Int32Array, at: number, values: readonly number[]): Int32Array {
  return Int32Array.from([...array.subarray(0, at), ...values, ...array.subarray(at)]);
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

/** What is inserted into the text behind the last item, and where. */
type Insertion = [at: number, insert: string];

function behindBlock(text: string, last: Span, rendered: string): Insertion | undefined {
  const dash = findDash(text, last.start);
  if (dash < 0) return undefined;
  const pad = " ".repeat(columnOf(text, dash));
  // Blank lines after the last item may belong to a block text that keeps them (`|+`).
  const keepsBlanks = /[|>]\d?\+/.test(text.slice(last.start, last.end));
  const lineEnd = endOfLine(text, last.end);
  const at = keepsBlanks ? skipBlankLines(text, lineEnd) : lineEnd;
  const newline = newlineAt(text, lineEnd);
  const isLineStart = at > 0 && text[at - 1] === "\n";
  const line = `${pad}- ${rendered}`;
  const insert = isLineStart ? `${line}${newline}` : `${newline}${line}`;
  const lastItem = `${pad}${text.slice(dash, at)}`;
  const before = parseAlone(lastItem);
  const after = parseAlone(lastItem + insert);
  const isMeant =
    isSeq(before) &&
    isSeq(after) &&
    after.items.length === before.items.length + 1 &&
    before.items.every((item, i) => sameShape(item, after.items[i])) &&
    sameShape(after.items.at(-1), parseAlone(rendered));
  return isMeant ? [at, insert] : undefined;
}

function behindFlow(text: string, last: Span, rendered: string): Insertion | undefined {
  const insert = `, ${rendered}`;
  const list = parseAlone(`[${text.slice(last.start, last.end)}${insert}]`);
  const isMeant = isSeq(list) && list.items.length === 2;
  return isMeant && sameShape(list.items[1], parseAlone(rendered)) ? [last.end, insert] : undefined;
}

/** Writes the first item: `nodes:` is empty or missing. */
function startList(doc: RoadmapDocument, rendered: string, id: string): RoadmapDocument {
  // The list is looked up anew, because edits of items do not note where an empty one is.
  const { text, nodesList } = parseRoadmap(doc.text);
  const { kind, colonEnd, value, indent } = nodesList;
  if (kind === "unusable") return refuse(id, "the file");
  const pad = " ".repeat(indent);
  let after: string;
  if (colonEnd !== undefined) {
    // An empty value goes, with the spaces before it.
    const from = colonEnd + text.slice(colonEnd, value?.start ?? colonEnd).trimEnd().length;
    const head = text.slice(0, from);
    const tail = text.slice(value?.end ?? from);
    const lineEnd = endOfLine(tail, 0);
    const line = `${newlineAt(head + tail, from + lineEnd)}${pad}  - ${rendered}`;
    after = head + tail.slice(0, lineEnd) + line + tail.slice(lineEnd);
  } else {
    const newline = newlineAt(text, text.length);
    const isOpen = text.length > 0 && text !== "\ufeff" && !text.endsWith("\n");
    const head = `${isOpen ? newline : ""}${pad}nodes:${newline}${pad}  - `;
    after = `${text}${head}${rendered}${newline}`;
  }
  // The text around the list may change what the new lines mean, so the whole text is read again. This is slow, but rare.
  const read = parseRoadmap(after);
  const ids = read.nodes.map((node) => node.id).filter((one) => one !== id);
  if (
    read.nodesList.kind !== "block" ||
    read.nodes.length !== doc.nodes.length + 1 ||
    ids.join(" ") !== doc.nodes.map((node) => node.id).join(" ")
  )
    return refuse(id, "the file");
  return read;
}
