/** A plan while its items are edited, each by itself. At the end the changed items are put back into the text, all at once. */
import { ErrTaskNotFound } from "../../../core/errors.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import { findNode, type RoadmapDocument, type Span } from "../read/document.ts";
import { ItemText, type Replacement } from "./item-text.ts";

export class Draft {
  private readonly nodes: RoadmapNode[];
  /** The items that were read, by the order of their node. */
  private readonly items = new Map<number, ItemText>();

  constructor(private readonly doc: RoadmapDocument) {
    this.nodes = doc.nodes.slice();
  }

  /** @throws ErrTaskNotFound */
  node(id: string): RoadmapNode {
    const node = findNode({ nodes: this.nodes, orders: this.doc.orders }, id);
    if (node !== undefined) return node;
    throw new ErrTaskNotFound(`the roadmap has no node ${JSON.stringify(id)}`, {
      id,
      phase: "edit",
      hint: "see `mailchute roadmap show`",
    });
  }

  /** The item of a node with the edits so far. @param what is to be changed in it, for a message */
  itemOf(node: RoadmapNode, what: string): ItemText {
    const known = this.items.get(node.order);
    if (known !== undefined) return known;
    const item = new ItemText(this.doc, node, what);
    this.items.set(node.order, item);
    return item;
  }

  /** @param without properties to remove */
  change(
    { order }: RoadmapNode,
    changes: Partial<RoadmapNode>,
    without: readonly (keyof RoadmapNode)[] = [],
  ): void {
    const next = { ...(this.nodes[order] as RoadmapNode), ...changes };
    for (const key of without) delete next[key];
    this.nodes[order] = next;
  }

  finish(): RoadmapDocument {
    const { doc, nodes } = this;
    const items = [...this.items.values()];
    const replacements = items.flatMap((item) => item.replacements());
    replacements.sort((a, b) => a.start - b.start);
    let text = "";
    let from = 0;
    for (const one of replacements) {
      text += doc.text.slice(from, one.start) + one.text;
      from = one.end;
    }
    text += doc.text.slice(from);
    const move = mover(replacements);
    const { last } = doc.nodesList;
    const ids = doc.places.ids.map(move);
    for (const item of items) {
      const { outer, shift } = item.idPlace();
      ids[item.node.order] = move(outer) + shift;
    }
    const holes = [...doc.places.holes].map(
      ([order, spans]) => [order, spans.map((span) => moveSpan(span, move))] as const,
    );
    return {
      ...doc,
      text,
      nodes,
      places: { spans: doc.places.spans.map(move), ids, holes: new Map(holes) },
      nodesList: { ...doc.nodesList, ...(last && { last: moveSpan(last, move) }) },
    };
  }
}

export function moveSpan({ start, end }: Span, move: (at: number) => number): Span {
  return { start: move(start), end: move(end) };
}

/**
 * Returns a function that says where a place of the old text is in the new text. Such a place is never inside a replaced piece, except
 * the ends of the items that end with it, and the id of its own item.
 */
function mover(replacements: readonly Replacement[]): (at: number) => number {
  /** How much longer the text has become with each replacement. */
  const sums: number[] = [];
  for (const { start, end, text } of replacements)
    sums.push((sums.at(-1) ?? 0) + text.length - (end - start));
  const first = replacements[0]?.start ?? 0;
  const last = replacements.at(-1)?.end ?? 0;
  const sum = sums.at(-1) ?? 0;
  return (at) => {
    if (at <= first) return at;
    if (at > last) return at + sum;
    let low = 0;
    for (let high = replacements.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((replacements[middle] as Replacement).start < at) low = middle + 1;
      else high = middle;
    }
    const before = replacements[low - 1] as Replacement;
    return at > before.end
      ? at + (sums[low - 1] as number)
      : before.start + (sums[low - 2] ?? 0) + before.itemEnd;
  };
}
