/** A plan while it is edited: its text, and the places of all items, which each splice updates. Only edits use it. */
import { foldId } from "../../../core/names.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { columnOf, type NodesList, type RoadmapDocument, type Span } from "../read/document.ts";
import type { RoadmapProblem } from "../read/problem.ts";

/** An item cut out of the text so that it can be read by itself. */
export interface ItemText {
  /** Begins with as many spaces as the item is indented. The lists that a container holds are left out. */
  text: string;
  indent: number;
  hasHoles: boolean;
  /** Converts a span of `text` to a span of the whole text. */
  toOuter(start: number, end: number): Span;
}

export class Draft {
  text: string;
  readonly nodes: RoadmapNode[];
  orders: Map<string, number>;
  nodesList: NodesList;
  private spans: Int32Array;
  private ids: Int32Array;
  private holes: Map<number, Span[]>;

  constructor(doc: RoadmapDocument) {
    this.text = doc.text;
    this.nodes = doc.nodes.slice();
    // Shared until a node is added, because copying it takes longer than all other steps.
    this.orders = doc.orders;
    this.nodesList = structuredClone(doc.nodesList);
    this.spans = doc.places.spans.slice();
    this.ids = doc.places.ids.slice();
    this.holes = structuredClone(doc.places.holes);
  }

  finish(problems: RoadmapProblem[]): RoadmapDocument {
    return {
      text: this.text,
      nodes: this.nodes,
      orders: this.orders,
      places: { spans: this.spans, ids: this.ids, holes: this.holes },
      nodesList: this.nodesList,
      problems,
    };
  }

  itemText(node: RoadmapNode): ItemText {
    const start = this.spans[2 * node.order] ?? 0;
    const end = this.spans[2 * node.order + 1] ?? 0;
    const indent = columnOf(this.text, start);
    const holes = (this.holes.get(node.order) ?? []).toSorted((a, b) => a.start - b.start);
    const pieces: { at: number; outer: Span }[] = [];
    let text = " ".repeat(indent);
    let from = start;
    for (const stop of [...holes, { start: end, end }]) {
      pieces.push({ at: text.length, outer: { start: from, end: stop.start } });
      text += this.text.slice(from, stop.start);
      from = stop.end;
    }
    return {
      text,
      indent,
      hasHoles: holes.length > 0,
      toOuter(a, b) {
        const piece = pieces.find(
          ({ at, outer }) => a >= at && b <= at + (outer.end - outer.start),
        );
        if (piece === undefined) throw new RangeError(`no piece of the item holds ${a} to ${b}`);
        const shift = piece.outer.start - piece.at;
        return { start: a + shift, end: b + shift };
      },
    };
  }

  /**
   * Replaces a piece of the text.
   * @param inside the node whose item the piece belongs to; text inserted exactly at the end of that item then becomes part of it
   */
  splice({ start, end }: Span, insert: string, inside?: RoadmapNode): void {
    const removed = this.text.slice(start, end);
    const delta = insert.length - removed.length;
    const ownStart = inside === undefined ? -1 : (this.spans[2 * inside.order] ?? 0);
    const ownEnd = inside === undefined ? -1 : (this.spans[2 * inside.order + 1] ?? 0);
    const shiftStart = (at: number): number => (at >= end && at > ownStart ? at + delta : at);
    const shiftEnd = (from: number, at: number): number =>
      at > end || (at === end && (end > start || (from <= ownStart && at >= ownEnd)))
        ? at + delta
        : at;
    this.text = this.text.slice(0, start) + insert + this.text.slice(end);
    const { spans, ids } = this;
    for (let i = 0; i < spans.length; i += 2) {
      const from = spans[i] as number;
      const to = spans[i + 1] as number;
      // An item that ended inside the replaced piece now ends where the new text ends.
      spans[i + 1] = to > start && to < end ? start + insert.length : shiftEnd(from, to);
      spans[i] = shiftStart(from);
    }
    for (const holes of this.holes.values())
      for (const hole of holes) {
        const from = hole.start;
        hole.start = shiftStart(from);
        hole.end = shiftEnd(from, hole.end);
      }
    for (let i = 0; i < ids.length; i++) {
      const at = ids[i] as number;
      if (at >= end) ids[i] = at + delta;
    }
    const list = this.nodesList;
    if (list.last !== undefined) {
      const { start: from, end: to } = list.last;
      list.last = { start: shiftStart(from), end: shiftEnd(from, to) };
    }
    if (list.colonEnd !== undefined && list.colonEnd > start)
      list.colonEnd = shiftStart(list.colonEnd);
    if (list.value !== undefined)
      list.value = { start: shiftStart(list.value.start), end: shiftStart(list.value.end) };
    this.moveLines(start + insert.length, countLines(insert) - countLines(removed));
  }

  /** Updates line and column of the ids behind a splice. */
  private moveLines(from: number, lines: number): void {
    const lineEnd = this.text.indexOf("\n", from);
    for (let i = 0; i < this.ids.length; i++) {
      const at = this.ids[i] as number;
      if (at < from) continue;
      const isSameLine = lineEnd < 0 || at <= lineEnd;
      if (lines === 0 && !isSameLine) continue;
      const node = this.nodes[i] as RoadmapNode;
      this.replaceNode(node, {
        line: node.line + lines,
        col: isSameLine ? columnOf(this.text, at) + 1 : node.col,
      });
    }
  }

  /** @param without properties to remove */
  replaceNode(
    node: RoadmapNode,
    changes: Partial<RoadmapNode>,
    without: readonly (keyof RoadmapNode)[] = [],
  ): void {
    const next = { ...node, ...changes };
    for (const key of without) delete next[key];
    this.nodes[node.order] = next;
  }

  /** Adds a node whose item is in the text already. */
  insertNode(node: RoadmapNode, span: Span, idAt: number): void {
    let order = this.nodes.length;
    while (order > 0 && (this.spans[2 * (order - 1)] as number) > span.start) order--;
    const lineStart = this.text.lastIndexOf("\n", idAt) + 1;
    const before = order > 0 ? this.nodes[order - 1] : undefined;
    const beforeAt = before === undefined ? 0 : (this.ids[order - 1] as number);
    const line = (before?.line ?? 1) + countLines(this.text.slice(beforeAt, lineStart));
    const whole: RoadmapNode = { ...node, order, line, col: columnOf(this.text, idAt) + 1 };
    this.spans = insertAt(this.spans, 2 * order, [span.start, span.end]);
    this.ids = insertAt(this.ids, order, [idAt]);
    this.holes = new Map([...this.holes].map(([at, holes]) => [at >= order ? at + 1 : at, holes]));
    this.nodes.splice(order, 0, whole);
    this.orders = new Map(this.orders);
    for (let i = order + 1; i < this.nodes.length; i++) {
      const moved = { ...(this.nodes[i] as RoadmapNode), order: i };
      this.nodes[i] = moved;
      const id = foldId(moved.id);
      if (this.orders.get(id) === i - 1) this.orders.set(id, i);
    }
    this.orders.set(foldId(whole.id), order);
    this.nodesList.last = span;
  }
}

function insertAt(array: Int32Array, at: number, values: readonly number[]): Int32Array {
  const next = new Int32Array(array.length + values.length);
  next.set(array.subarray(0, at));
  next.set(values, at);
  next.set(array.subarray(at), at + values.length);
  return next;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
