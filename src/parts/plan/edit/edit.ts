/**
 * Edits the text of a plan and changes nothing else in it: comments, order, spacing and line ends stay byte for byte.
 * Pure: takes a document and returns a new one, usually without reading the whole text again.
 */
import { isDeepStrictEqual } from "node:util";
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import type { NodeDependency, NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { checkPlan } from "../read/check.ts";
import { findNode, parseRoadmap, placesIn, type RoadmapDocument } from "../read/document.ts";
import { placeInContainers } from "../rules/belonging.ts";
import { addNode, type NewNode } from "./add-node.ts";
import { Draft } from "./draft.ts";
import { ItemText } from "./item-text.ts";
import { addDependency, removeDependency } from "./set-dependency.ts";
import { type SettableField, setField, setStatus } from "./set-field.ts";

export type { NewNode, SettableField };

export type RoadmapEdit =
  | { kind: "status"; id: string; status: NodeStatus }
  | { kind: "add"; node: NewNode }
  /** Sets one key of an item to a plain value. Status and dependencies have edits of their own; the id cannot be changed. */
  | { kind: "set"; id: string; field: SettableField; value: unknown }
  /** Adds a dependency, or changes its requirement. No change if the node has it with the same requirement. */
  | { kind: "add-dep"; id: string; on: string; required?: NodeDependency["required"] }
  /** No change if the node does not have the dependency. */
  | { kind: "remove-dep"; id: string; on: string };

/** The node that an edit changes or adds. */
export function idOf(edit: RoadmapEdit): string {
  return edit.kind === "add" ? edit.node.id : edit.id;
}

/** @throws ErrInvalidRoadmap the item cannot be read by itself */
export function hasKey(doc: RoadmapDocument, node: RoadmapNode, key: string): boolean {
  return new ItemText(doc, node, key).find(key) !== undefined;
}

/**
 * Applies the edits in their order, all or none.
 * @throws ErrTaskNotFound no such node, for example because a person deleted it · ErrTaskExists a node with the new id exists ·
 *   ErrInvalidRoadmap the edit would also change other items, or the plan would break a rule that it kept before
 */
export function applyEdits(doc: RoadmapDocument, edits: readonly RoadmapEdit[]): RoadmapDocument {
  const after = applyAll(doc, edits);
  if (edits.every((edit) => edit.kind === "status")) return after;
  // These edits may affect many nodes or move known problems. So the whole text is read again, which is slow but rare.
  const isSweeping = edits.some((edit) => edit.kind === "set" && edit.field === "parent");
  const isShared = edits.some(isOfOneNode) && ANCHOR.test(doc.text);
  if (isSweeping || isShared || doc.problems.length > 0) {
    const again = parseRoadmap(after.text);
    if (isShared) refuseSpread(doc, again, edits);
    return refuseNewProblems(doc, again);
  }
  const find = (id: string): RoadmapNode | undefined => findNode(after, id);
  placeInContainers(after.nodes, find);
  const problems = checkPlan(after.nodes, find, (node) => placesIn(after)(node));
  return refuseNewProblems(doc, { ...after, problems });
}

/** Items are edited together. A new node is added to a plan without edits under way, because it moves the places of the others. */
function applyAll(doc: RoadmapDocument, edits: readonly RoadmapEdit[]): RoadmapDocument {
  let after = doc;
  let draft: Draft | undefined;
  for (const edit of edits)
    if (edit.kind === "add") {
      after = addNode(draft?.finish() ?? after, edit.node);
      draft = undefined;
    } else {
      draft ??= new Draft(after);
      applyEdit(draft, edit);
    }
  return draft?.finish() ?? after;
}

/** Finds a YAML anchor: `&name`, but not the `&&` of a shell. */
const ANCHOR = /(?:^|[\s[{,])&[^\s,&[\]{}]/m;
/** Properties that depend on the place of a node in the file, and not on the text of its item. */
const PLACE = { order: 0, epic: "", milestone: "" };

function isOfOneNode({ kind }: RoadmapEdit): boolean {
  return kind === "set" || kind === "add-dep" || kind === "remove-dep";
}

/** Refuses edits that also change other nodes, which may copy from an item with an anchor by `<<` or an alias. */
function refuseSpread(
  before: RoadmapDocument,
  after: RoadmapDocument,
  edits: readonly RoadmapEdit[],
): void {
  const meant = new Set(edits.map((edit) => foldId(idOf(edit))));
  for (const node of before.nodes) {
    if (meant.has(foldId(node.id))) continue;
    const now = findNode(after, node.id);
    if (isDeepStrictEqual({ ...now, ...PLACE }, { ...node, ...PLACE })) continue;
    const ids = edits.filter(isOfOneNode).map(idOf);
    throw new ErrInvalidRoadmap(`this would change ${node.id} as well as ${ids.join(", ")}`, {
      phase: "edit",
      hint: `${node.id} copies it (by << or an alias): write out in ${node.id} the values that must stay`,
    });
  }
}

function applyEdit(draft: Draft, edit: Exclude<RoadmapEdit, { kind: "add" }>): void {
  const { kind, id } = edit;
  if (kind === "status") setStatus(draft, draft.node(id), edit.status);
  else if (kind === "set") setField(draft, draft.node(id), edit.field, edit.value);
  else if (kind === "add-dep") addDependency(draft, id, edit.on, edit.required ?? "done");
  else removeDependency(draft, id, edit.on);
}

function refuseNewProblems(before: RoadmapDocument, after: RoadmapDocument): RoadmapDocument {
  const known = new Set(before.problems.map((one) => `${one.code} ${one.message}`));
  const fresh = after.problems.find((one) => !known.has(`${one.code} ${one.message}`));
  if (fresh === undefined) return after;
  throw new ErrInvalidRoadmap(fresh.message, { phase: "edit", hint: fresh.hint });
}
