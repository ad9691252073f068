/**
 * Puts what we changed into a text that a person has just saved, without reading that text as a plan: an item that stands
 * there letter for letter as we knew it becomes the item as we want it. Pure. Reading a large plan takes longer than some
 * programs take to save it again, and then no change of ours would ever get in.
 */
import type { RoadmapNode } from "../core/roadmap.ts";
import { findNode, type RoadmapDocument } from "./document.ts";
import type { RoadmapEdit } from "./edit.ts";

/**
 * @param before the plan as it stood in the file when we last knew it
 * @param after the same with `edits`
 * @param theirs what stands there now
 * @returns undefined when one of the edits cannot be carried over so: then their text must be read first
 */
export function carryOver(
  before: RoadmapDocument,
  after: RoadmapDocument,
  edits: readonly RoadmapEdit[],
  theirs: string,
): string | undefined {
  let text: string | undefined = theirs;
  const changed = new Set(edits.flatMap((edit) => (edit.kind === "add" ? [] : [edit.id])));
  for (const id of changed) {
    const old = findNode(before, id);
    const node = findNode(after, id);
    if (node === undefined) return undefined;
    // Added by an edit before this one: it comes as a whole below.
    if (old === undefined) continue;
    if (before.places.holes.has(old.order)) return undefined;
    text = replaceOnce(text, itemText(before, old), itemText(after, node));
    if (text === undefined) return undefined;
  }
  const added = edits.some((edit) => edit.kind === "add");
  return added ? appendAdded(before, after, text) : text;
}

/** New items stand behind the last one of the list that was there. */
function appendAdded(
  before: RoadmapDocument,
  after: RoadmapDocument,
  theirs: string,
): string | undefined {
  const last = before.nodes.findLast((node) => node.section === "nodes");
  const anchor = last === undefined ? undefined : findNode(after, last.id);
  const newest = after.nodes.findLast((node) => node.section === "nodes");
  if (anchor === undefined || newest === undefined) return undefined;
  // With the rest of its line, which may hold a remark.
  const lineEnd = endOfLine(after.text, endOf(after, anchor));
  const anchorText = after.text.slice(startOf(after, anchor), lineEnd);
  return replaceOnce(
    theirs,
    anchorText,
    anchorText + after.text.slice(lineEnd, endOf(after, newest)),
  );
}

function replaceOnce(text: string, from: string, to: string): string | undefined {
  const at = text.indexOf(from);
  if (from === "" || at === -1 || text.indexOf(from, at + 1) !== -1) return undefined;
  return text.slice(0, at) + to + text.slice(at + from.length);
}

function itemText(doc: RoadmapDocument, node: RoadmapNode): string {
  return doc.text.slice(startOf(doc, node), endOf(doc, node));
}

function startOf({ places }: RoadmapDocument, { order }: RoadmapNode): number {
  return places.spans[2 * order] ?? 0;
}

function endOf({ places }: RoadmapDocument, { order }: RoadmapNode): number {
  return places.spans[2 * order + 1] ?? 0;
}

function endOfLine(text: string, from: number): number {
  const at = text.slice(from).search(/[\r\n]/);
  return at === -1 ? text.length : from + at;
}
