/**
 * Changes to a plan's text that touch nothing but what they are about: comments, order, spacing and line ends stay byte
 * for byte. Pure: a document in, a new one out, without reading the whole text again.
 */
import { isMap, isScalar, isSeq, type Node, type Pair, parseDocument, type YAMLMap } from "yaml";
import { findRepeatedKeys } from "../codec/yaml-keys.ts";
import { ErrInvalidRoadmap, ErrTaskExists, ErrTaskNotFound } from "../core/errors.ts";
import { foldId } from "../core/names.ts";
import {
  isContainer,
  type NodeDependency,
  type NodeStatus,
  type RoadmapNode,
} from "../core/roadmap.ts";
import { checkPlan, placeInContainers } from "./check.ts";
import { columnOf, findNode, parseRoadmap, type RoadmapDocument, type Span } from "./document.ts";
import { Draft, type ItemText } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import { decodeItem, type ItemSource, keyOf } from "./item.ts";
import { sameBut, sameShape, textsOf, valuesOf } from "./shape.ts";

/** A node to add: its keys as they are written in the file, in the order they shall have. */
export interface NewNode {
  id: string;
  [key: string]: unknown;
}

export type RoadmapEdit =
  | { kind: "status"; id: string; status: NodeStatus }
  | { kind: "add"; node: NewNode }
  /** Sets one key of an item; the value is plain data. For status, id and dependencies there are edits of their own. */
  | { kind: "set"; id: string; field: SettableField; value: unknown }
  /** There already with the same requirement: no change. With another: that is changed. */
  | { kind: "add-dep"; id: string; on: string; required?: NodeDependency["required"] }
  /** Not there: no change. */
  | { kind: "remove-dep"; id: string; on: string };

/** What of a node a key of its item says. */
const PROPERTY_OF = {
  type: "type",
  title: "title",
  parent: "parent",
  domain: "domain",
  priority: "priority",
  retry_policy: "max_attempts",
  max_attempts: "max_attempts",
  inputs: "inputs",
  goal: "goal",
  description: "goal",
  prompt: "prompt",
  acceptance: "acceptance",
  verify: "verify",
  exec: "exec",
  agent: "agent",
  role: "role",
  capabilities: "capabilities",
  cwd: "cwd",
  env: "env",
  timeout_ms: "timeout_ms",
  payload: "payload",
  reopened: "reopened",
} as const satisfies Record<string, keyof RoadmapNode>;

export type SettableField = keyof typeof PROPERTY_OF;
export const SETTABLE_FIELDS = Object.keys(PROPERTY_OF) as SettableField[];

/** Keys of our own shape of a node that the file writes differently, or not at all. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  "section",
  "order",
  "line",
  "col",
  "max_attempts",
]);

/**
 * The document with all edits, in their order; all or none.
 * @throws ErrTaskNotFound no such node (an edit of a file from which a person took it) · ErrTaskExists add of an id that is there ·
 *   ErrInvalidRoadmap the text cannot be changed without changing more, or the plan would break a rule that it kept before
 */
export function applyEdits(doc: RoadmapDocument, edits: readonly RoadmapEdit[]): RoadmapDocument {
  const draft = new Draft(doc);
  for (const edit of edits) applyEdit(draft, edit);
  if (edits.every((edit) => edit.kind === "status")) return draft.finish(doc.problems);
  // What belongs where may have changed for many, or old faults with their places: the slow way is right, and rare.
  const isSweeping = edits.some((edit) => edit.kind === "set" && edit.field === "parent");
  if (isSweeping || doc.problems.length > 0)
    return refuseNewProblems(doc, parseRoadmap(draft.text));
  const find = (id: string): RoadmapNode | undefined => findNode(draft, id);
  placeInContainers(draft.nodes, find);
  return refuseNewProblems(doc, draft.finish(checkPlan(draft.nodes, find)));
}

function applyEdit(draft: Draft, edit: RoadmapEdit): void {
  switch (edit.kind) {
    case "status":
      setStatus(draft, getNode(draft, edit.id), edit.status);
      return;
    case "add":
      addNode(draft, edit.node);
      return;
    case "set":
      setField(draft, getNode(draft, edit.id), edit.field, edit.value);
      return;
    case "add-dep":
      addDependency(draft, getNode(draft, edit.id), edit.on, edit.required ?? "done");
      return;
    case "remove-dep":
      removeDependency(draft, getNode(draft, edit.id), edit.on);
      return;
  }
}

function refuseNewProblems(before: RoadmapDocument, after: RoadmapDocument): RoadmapDocument {
  const known = new Set(before.problems.map((one) => `${one.code} ${one.message}`));
  const fresh = after.problems.find((one) => !known.has(`${one.code} ${one.message}`));
  if (fresh === undefined) return after;
  throw new ErrInvalidRoadmap(fresh.message, { phase: "edit", hint: fresh.hint });
}

function getNode(draft: Draft, id: string): RoadmapNode {
  const node = findNode(draft, id);
  if (node !== undefined) return node;
  throw new ErrTaskNotFound(`the roadmap has no node ${JSON.stringify(id)}`, {
    id,
    phase: "edit",
    hint: "see `mailchute roadmap show`",
  });
}

function refuse(id: string, what: string): never {
  throw new ErrInvalidRoadmap(`cannot change ${what} of ${id} without changing more than that`, {
    id,
    phase: "edit",
    hint: "change it by hand, or write the item on one line: - { id: …, status: … }",
  });
}

// ——— one item ———

function readItem(draft: Draft, node: RoadmapNode, what: string): { item: ItemText; map: YAMLMap } {
  const item = draft.itemText(node);
  const map = parseAlone(item.text);
  if (!isMap(map) || map.range?.[0] !== item.indent) return refuse(node.id, what);
  return { item, map };
}

/** What a piece of the text says by itself; undefined when it cannot stand by itself. Aliases may lead out of it. */
function parseAlone(text: string): Node | undefined {
  // Repeated keys are looked for here: the library compares each key with each.
  const doc = parseDocument(text, {
    strict: true,
    prettyErrors: false,
    merge: true,
    uniqueKeys: false,
  });
  const isBroken = doc.errors.some((one) => one.code !== "BAD_ALIAS");
  if (isBroken || findRepeatedKeys(doc.contents).length > 0) return undefined;
  return doc.contents ?? undefined;
}

/** Makes sure that the item says the same as before but for one key, which says `value`. */
function verifyItem(
  draft: Draft,
  id: string,
  before: YAMLMap,
  key: string,
  value: unknown,
): YAMLMap {
  const node = getNode(draft, id);
  const { map } = readItem(draft, node, key);
  if (!sameBut(before, map, key, value)) return refuse(id, key);
  return map;
}

function setStatus(draft: Draft, node: RoadmapNode, status: NodeStatus): void {
  const word = status === "open" && node.section === "epics" ? "pending" : status;
  setKey(draft, node, "status", word, word);
  draft.replaceNode(getNode(draft, node.id), { status });
}

function setField(draft: Draft, node: RoadmapNode, field: SettableField, value: unknown): void {
  if (!Object.hasOwn(PROPERTY_OF, field))
    throw new ErrInvalidRoadmap(`${String(field)} cannot be set`, {
      id: node.id,
      phase: "edit",
      hint: `known are: ${SETTABLE_FIELDS.join(", ")}`,
    });
  const map = setKey(draft, node, field, renderFlow(value), value);
  takeOver(draft, node, map, field, PROPERTY_OF[field]);
}

/** Reads one property of a node again from its changed item. */
function takeOver(
  draft: Draft,
  node: RoadmapNode,
  map: YAMLMap,
  key: string,
  property: keyof RoadmapNode,
): void {
  const pair = findPair(map, key);
  const source = new LonelyItem(rangeOfPair(pair));
  const context = {
    section: node.section,
    type: node.section === "epics" && isContainer(node) ? node.type : ("task" as const),
    order: node.order,
    ...(node.section === "epics" && node.parent !== undefined ? { parent: node.parent } : {}),
  };
  const decoded = decodeItem(map, source, context);
  source.throwFault(node.id);
  const value = decoded?.node[property as keyof typeof decoded.node];
  const now = getNode(draft, node.id);
  if (property === "parent")
    draft.replaceNode(now, { parent: value as string }, ["epic", "milestone"]);
  else if (value === undefined) draft.replaceNode(now, {}, [property]);
  else draft.replaceNode(now, { [property]: value });
}

/** Reads an item that stands alone: what aliases say is not known here, so only faults of one key count. */
class LonelyItem implements ItemSource {
  private readonly within: Span | undefined;
  private found: { message: string; hint: string } | undefined;

  constructor(within?: Span) {
    this.within = within;
  }

  follow(raw: unknown): Node | undefined {
    return isMap(raw) || isSeq(raw) || isScalar(raw) ? raw : undefined;
  }

  valueOf(node: Node): unknown {
    return valuesOf(node);
  }

  fault(_code: unknown, at: number, message: string, hint: string): void {
    if (this.within !== undefined && (at < this.within.start || at > this.within.end)) return;
    this.found ??= { message, hint };
  }

  throwFault(id: string): void {
    if (this.found === undefined) return;
    const { message, hint } = this.found;
    throw new ErrInvalidRoadmap(message, { id, phase: "edit", hint });
  }
}

// ——— keys ———

function findPair(map: YAMLMap, key: string): Pair | undefined {
  return (map.items as Pair[]).find((pair) => keyOf(pair) === key);
}

function rangeOfPair(pair: Pair | undefined): Span {
  const key = pair?.key as Node | undefined;
  const value = pair?.value as Node | null | undefined;
  return { start: key?.range?.[0] ?? 0, end: value?.range?.[1] ?? key?.range?.[1] ?? 0 };
}

/** Writes `key: rendered` into an item, over the old value or as a new pair. `value` is what it must say then. */
function setKey(
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
  // A block below its key: the new value goes behind the colon, so that a comment there stays.
  const lineEnd = endOfLine(item.text, colonEnd);
  draft.splice(item.toOuter(lineEnd, end), "", node);
  draft.splice(item.toOuter(colonEnd, colonEnd), ` ${rendered}`, node);
}

/** `"open"` becomes `"done"`: the quotes are the person's. */
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
  // After the id, or after the one-line keys that follow it: never into a block.
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

// ——— dependencies ———

function addDependency(
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

function removeDependency(draft: Draft, node: RoadmapNode, on: string): void {
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
      // From the end of the line before to the end of its own: the last line of a file may have no line end.
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

/** Each dependency as plain data, whatever shape the whole has. */
function dependencyValues(list: unknown): unknown[] {
  const value = isSeq(list) || isMap(list) || isScalar(list) ? textsOf(list) : undefined;
  return value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
}

function idOfDependency(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const { id, node } = value as { id?: unknown; node?: unknown };
  return String(id ?? node);
}

// ——— new nodes ———

function addNode(draft: Draft, given: NewNode): void {
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

/** The item as the file writes it: id, type and status first. */
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
  // Blank lines after it may belong to a text that keeps them.
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

/** The first item: `nodes:` is empty, or not there at all. */
function startList(draft: Draft, rendered: string, id: string): number {
  const { kind, colonEnd, value, indent } = draft.nodesList;
  if (kind === "unusable") return refuse(id, "the file");
  const before = draft.text;
  const pad = " ".repeat(indent);
  let start: number;
  if (kind === "empty" && colonEnd !== undefined) {
    if (value !== undefined) {
      // With the spaces before it.
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
  // Rare, so that it may be slow: what follows from the surroundings is seen by reading all of it.
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

// ——— text ———

/** The dash of the list item that begins at or before `start`; -1 when it cannot be told. */
function findDash(text: string, start: number): number {
  let at = start - 1;
  while (at >= 0 && /\s/.test(text[at] as string)) at--;
  if (text[at] === "-") return at;
  // An anchor, a tag or a comment stands in between.
  for (let lineStart = text.lastIndexOf("\n", start - 1) + 1; ; ) {
    const lineEnd = Math.min(start, endOfLine(text, lineStart));
    const match = /^\s*-(?=\s|$)/.exec(text.slice(lineStart, lineEnd));
    if (match !== null) return lineStart + match[0].length - 1;
    if (lineStart === 0) return -1;
    lineStart = text.lastIndexOf("\n", lineStart - 2) + 1;
  }
}

/** Column of the dash before a list item on its line, or -1. */
function dashColumn(text: string, start: number): number {
  const lineStart = text.lastIndexOf("\n", start) + 1;
  const match = /^( *)- +$/.exec(text.slice(lineStart, start));
  return match === null ? -1 : (match[1] ?? "").length;
}

/** From the end of a line to the start of the first line after it that holds something, or to the text's end. */
function skipBlankLines(text: string, lineEnd: number): number {
  const match = /^(?:[ \t]*\r?\n)+/.exec(text.slice(lineEnd));
  return lineEnd + (match?.[0].length ?? 0);
}

function trimEnd(text: string, start: number, end: number): number {
  return start + text.slice(start, end).trimEnd().length;
}

/** The offset of the line break (`\n` or `\r\n`) at or after `from`, or the text's end. */
function endOfLine(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  if (at < 0) return text.length;
  return text[at - 1] === "\r" && at > from ? at - 1 : at;
}

/** The line break at an offset; at the end of the text the one that the text uses. */
function newlineAt(text: string, at: number): string {
  if (at >= text.length) {
    const first = text.indexOf("\n");
    return first > 0 && text[first - 1] === "\r" ? "\r\n" : "\n";
  }
  return text[at] === "\r" ? "\r\n" : "\n";
}
