/** Finds the work in a list: one item for each box that has no boxes below it. Pure. */
import { type Box, dedent, type ListItem, type ParsedList } from "./parse-list.ts";

export interface WorkItem {
  box: Box;
  /** Number of its line, from 1. */
  line: number;
  title: string;
  /** Its line and the lines of the items around it. An item with the same text counts as the same item. */
  text: string;
  /** The prompt for the agent. */
  prompt: string;
}

/** A box with boxes below it. It has no task of its own: it is done when all of them are done. */
export interface Heading {
  box: Box;
  /** All boxes below it, at any depth. */
  boxes: Box[];
}

export interface ListWork {
  items: WorkItem[];
  /** The innermost first. */
  headings: Heading[];
}

export function workOf({ lines, items }: ParsedList): ListWork {
  const below = new Map<ListItem, Box[]>();
  /** For an item with boxes below it: the first line of these boxes. */
  const firstBelow = new Map<ListItem, number>();
  for (const { box, parent, line } of items) {
    if (box === undefined) continue;
    let child = line;
    for (let above = parent; above !== undefined; above = above.parent) {
      const boxes = below.get(above);
      if (boxes === undefined) {
        below.set(above, [box]);
        firstBelow.set(above, child);
      } else boxes.push(box);
      child = above.line;
    }
  }
  const linesOf = (item: ListItem): string[] => {
    const end = firstBelow.get(item) ?? item.lastLine + 1;
    const body = lines.slice(item.line + 1, end).map((line) => dedent(line, item.column));
    while (body.at(-1)?.trim() === "") body.pop();
    return [item.head, ...body];
  };
  const work: ListWork = { items: [], headings: [] };
  for (const item of items) {
    const { box, head } = item;
    const boxes = below.get(item);
    if (box === undefined) continue;
    if (boxes !== undefined) {
      work.headings.unshift({ box, boxes });
      continue;
    }
    const above = itemsAbove(item);
    work.items.push({
      box,
      line: item.line + 1,
      title: head,
      text: [...above, item].map((one) => one.head).join("\n"),
      prompt: [...linesOf(item), ...contextOf(above, linesOf)].join("\n"),
    });
  }
  return work;
}

/** The items around an item, the outermost first. */
function itemsAbove(item: ListItem): ListItem[] {
  const above: ListItem[] = [];
  for (let one = item.parent; one !== undefined; one = one.parent)
    if (one.head !== "") above.unshift(one);
  return above;
}

function contextOf(above: readonly ListItem[], linesOf: (item: ListItem) => string[]): string[] {
  if (above.length === 0) return [];
  const context = above.flatMap((item, depth) =>
    linesOf(item).map((line, n) => `${"  ".repeat(depth)}${n === 0 ? "- " : "  "}${line}`),
  );
  return ["", "It is a part of:", ...context.map((line) => line.trimEnd())];
}
