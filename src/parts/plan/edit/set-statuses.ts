/**
 * Sets the statuses of many nodes at once. Each edit of a draft moves the places of all later items, so thousands of edits take
 * minutes. Here each item is edited by itself, together with its lines, and the whole text is then joined once.
 */
import { isDeepStrictEqual } from "node:util";
import { foldId } from "../../../core/names.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { findNode, parseRoadmap, type RoadmapDocument } from "../read/document.ts";
import { Draft } from "./draft.ts";
import { getNode } from "./one-item.ts";
import { setStatus, wordOf } from "./set-status.ts";
import { endOfLine } from "./text-lines.ts";

/** The piece of the text in which an item is edited. */
interface Piece {
  start: number;
  end: number;
  text: string;
}

/**
 * @returns undefined if the items cannot be edited one by one: then each is edited in the whole text
 * @throws as `applyEdits`
 */
export function setStatuses(
  doc: RoadmapDocument,
  statuses: ReadonlyMap<string, NodeStatus>,
): RoadmapDocument | undefined {
  return (
    setEach(doc, statuses, (node, status) => replaceWord(doc, node, status)) ??
    setEach(doc, statuses, (node, status) => editAlone(doc, node, status))
  );
}

/** @param edit edits an item that holds no others */
function setEach(
  doc: RoadmapDocument,
  statuses: ReadonlyMap<string, NodeStatus>,
  edit: (node: RoadmapNode, status: NodeStatus) => Piece,
): RoadmapDocument | undefined {
  const pieces: Piece[] = [];
  const held: [string, NodeStatus][] = [];
  for (const [id, status] of statuses) {
    const node = findNode(doc, id) ?? getNode(new Draft(doc), id);
    // A container is edited at the end, in the whole text.
    if (doc.places.holes.has(node.order)) held.push([id, status]);
    else pieces.push(edit(node, status));
  }
  pieces.sort((a, b) => a.start - b.start);
  let text = "";
  let at = 0;
  for (const piece of pieces) {
    // Two items on one line.
    if (piece.start < at) return undefined;
    text += doc.text.slice(at, piece.start) + piece.text;
    at = piece.end;
  }
  const after = parseRoadmap(text + doc.text.slice(at));
  if (!isMeant(doc, after, statuses, held)) return undefined;
  if (held.length === 0) return after;
  const draft = new Draft(after);
  for (const [id, status] of held) setStatus(draft, getNode(draft, id), status);
  return draft.finish(after.problems);
}

/** The usual spelling of a status in an item. Other text may look the same, so `isMeant` checks the result. */
const WORD =
  /(?<=(?:^|[\s{,])status:[ \t]+)(?:open|pending|in_progress|blocked|needs_human|done|failed)(?=[\s,}]|$)/;

/** Replaces the word after the only `status` of the item. With no such word, or several, for example in a comment, parses the item. */
function replaceWord(doc: RoadmapDocument, node: RoadmapNode, status: NodeStatus): Piece {
  const { spans } = doc.places;
  const itemStart = spans[2 * node.order] ?? 0;
  const item = doc.text.slice(itemStart, spans[2 * node.order + 1]);
  const isOnly = item.indexOf("status") === item.lastIndexOf("status");
  const found = isOnly ? WORD.exec(item) : null;
  if (found === null) return editAlone(doc, node, status);
  const start = itemStart + found.index;
  return { start, end: start + found[0].length, text: wordOf(node, status) };
}

/** Edits the item in a document that holds nothing else, and checks it there. */
function editAlone(doc: RoadmapDocument, node: RoadmapNode, status: NodeStatus): Piece {
  const { spans, ids } = doc.places;
  const start = spans[2 * node.order] ?? 0;
  const itemEnd = spans[2 * node.order + 1] ?? 0;
  const lineStart = doc.text.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = endOfLine(doc.text, itemEnd);
  const end = skipNewline(doc.text, lineEnd);
  const alone = new Draft({
    text: doc.text.slice(lineStart, end),
    nodes: [{ ...node, order: 0 }],
    orders: new Map([[foldId(node.id), 0]]),
    places: {
      spans: Int32Array.of(start - lineStart, itemEnd - lineStart),
      ids: Int32Array.of((ids[node.order] ?? 0) - lineStart),
      holes: new Map(),
    },
    nodesList: { kind: "unusable", indent: 0 },
    problems: [],
  });
  setStatus(alone, getNode(alone, node.id), status);
  return { start: lineStart, end, text: alone.text };
}

function skipNewline(text: string, lineEnd: number): number {
  const at = text.indexOf("\n", lineEnd);
  return at < 0 ? text.length : at + 1;
}

/** Properties that depend on the place of a node in the file. */
const PLACE = { line: 0, col: 0 };

/** True if the nodes are the same, with the new statuses. */
function isMeant(
  before: RoadmapDocument,
  after: RoadmapDocument,
  statuses: ReadonlyMap<string, NodeStatus>,
  held: readonly [string, NodeStatus][],
): boolean {
  const later = new Set(held.map(([id]) => id));
  return (
    after.nodes.length === before.nodes.length &&
    after.nodes.every((node, order) => {
      const old = before.nodes[order];
      const status = later.has(node.id) ? old?.status : (statuses.get(node.id) ?? old?.status);
      return isDeepStrictEqual({ ...node, ...PLACE }, { ...old, ...PLACE, status });
    })
  );
}
