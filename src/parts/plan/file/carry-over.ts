/**
 * Writes the supervisor's edits into a text that a person has just saved, without parsing it as a plan: an item whose text is
 * unchanged is replaced by the edited item. Pure. Some programs save a large plan again before it can be parsed; without this,
 * the supervisor's edits would never be written.
 */
import { foldId } from "../../../core/names.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { RoadmapEdit } from "../edit/edit.ts";
import { endOfLine } from "../edit/text-lines.ts";
import { findNode, type RoadmapDocument, spanOf } from "../read/document.ts";

/**
 * @param before the plan that the file had when it was last read or written
 * @param after the same plan with `edits`
 * @param theirs the text that is in the file now
 * @returns undefined if one of the edits cannot be made in this way: then the text must be parsed first
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
    // The node was added by an earlier edit of the list. Its whole item is inserted below.
    if (old === undefined) continue;
    if (before.places.holes.has(old.order)) return undefined;
    text = replaceOnce(text, itemText(before, old), itemText(after, node));
    if (text === undefined) return undefined;
  }
  const added = edits.flatMap((edit) => (edit.kind === "add" ? [edit.node.id] : []));
  if (!areNamesKnown(before, after, [...changed, ...added], theirs)) return undefined;
  if (added.length === 0) return text;
  const ids = idsIn(theirs);
  return added.some((id) => ids.has(foldId(id))) ? undefined : appendAdded(before, after, text);
}

/** True if each node that the edits newly refer to is unchanged in the text, or is added by them. */
function areNamesKnown(
  before: RoadmapDocument,
  after: RoadmapDocument,
  ids: readonly string[],
  theirs: string,
): boolean {
  const named = new Set<string>();
  for (const id of ids) {
    const known = new Set(namesIn(findNode(before, id)));
    for (const name of namesIn(findNode(after, id))) if (!known.has(name)) named.add(name);
  }
  return [...named].every((name) => {
    const node = findNode(before, name);
    return node === undefined ? findNode(after, name) !== undefined : stands(before, node, theirs);
  });
}

function namesIn(node: RoadmapNode | undefined): string[] {
  const names = node?.dependencies.map((one) => one.id) ?? [];
  return node?.parent === undefined ? names : [...names, node.parent];
}

/** True if the text has the item unchanged, from the start of its line. So the item is not inside a comment. */
function stands(before: RoadmapDocument, node: RoadmapNode, theirs: string): boolean {
  const { start, end } = spanOf(before, node);
  const text = before.text.slice(before.text.lastIndexOf("\n", start - 1) + 1, end);
  const at = theirs.indexOf(text);
  return at === 0 || (at > 0 && theirs[at - 1] === "\n");
}

/** Everything in the text that looks like an id, even in comments. The ids are folded. */
function idsIn(text: string): Set<string> {
  const found = text.matchAll(/\bid["']?\s*:\s*(?:[&!]\S+\s+)*["']?([^\s"',}\]]+)/gi);
  return new Set(Array.from(found, ([, id = ""]) => foldId(id)));
}

/** Inserts new items behind the last item that the list had before. */
function appendAdded(
  before: RoadmapDocument,
  after: RoadmapDocument,
  theirs: string,
): string | undefined {
  const last = before.nodes.findLast((node) => node.section === "nodes");
  const anchor = last === undefined ? undefined : findNode(after, last.id);
  const newest = after.nodes.findLast((node) => node.section === "nodes");
  if (anchor === undefined || newest === undefined) return undefined;
  // Includes the rest of the item's line, which may hold a comment.
  const { start, end } = spanOf(after, anchor);
  const anchorText = after.text.slice(start, endOfLine(after.text, end));
  const withNew = after.text.slice(start, spanOf(after, newest).end);
  return replaceOnce(theirs, anchorText, withNew);
}

function replaceOnce(text: string, from: string, to: string): string | undefined {
  const at = text.indexOf(from);
  if (from === "" || at === -1 || text.indexOf(from, at + 1) !== -1) return undefined;
  return text.slice(0, at) + to + text.slice(at + from.length);
}

function itemText(doc: RoadmapDocument, node: RoadmapNode): string {
  const { start, end } = spanOf(doc, node);
  return doc.text.slice(start, end);
}
