/**
 * Edits the text of a plan and changes nothing else in it: comments, order, spacing and line ends stay byte for byte.
 * Pure: takes a document and returns a new one, usually without reading the whole text again.
 */
import { isDeepStrictEqual } from "node:util";
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import { foldId } from "../../../core/names.ts";
import type { NodeDependency, NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import { checkPlan } from "../read/check.ts";
import { findNode, parseRoadmap, type RoadmapDocument } from "../read/document.ts";
import { placeInContainers } from "../rules/belonging.ts";
import { addNode, type NewNode } from "./add-node.ts";
import { Draft } from "./draft.ts";
import { getNode } from "./one-item.ts";
import { addDependency, removeDependency } from "./set-dependency.ts";
import { type SettableField, setField } from "./set-field.ts";
import { setStatus } from "./set-status.ts";
import { setStatuses } from "./set-statuses.ts";

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

/**
 * Applies the edits in their order, all or none.
 * @throws ErrTaskNotFound no such node, for example because a person deleted it · ErrTaskExists a node with the new id exists ·
 *   ErrInvalidRoadmap the edit would also change other items, or the plan would break a rule that it kept before
 */
export function applyEdits(doc: RoadmapDocument, edits: readonly RoadmapEdit[]): RoadmapDocument {
  const many = manyStatuses(edits);
  const after = many === undefined ? undefined : setStatuses(doc, many);
  return after === undefined
    ? applyOneByOne(doc, edits)
    : applyOneByOne(
        after,
        edits.filter((edit) => edit.kind !== "status"),
      );
}

/** The statuses that the edits set, by id. Undefined when they are few, when another edit comes before one, or when a node is added. */
function manyStatuses(edits: readonly RoadmapEdit[]): Map<string, NodeStatus> | undefined {
  if (edits.length < MANY) return undefined;
  const statuses = new Map<string, NodeStatus>();
  let isBehind = false;
  for (const edit of edits) {
    if (edit.kind === "add" || (edit.kind === "status" && isBehind)) return undefined;
    if (edit.kind === "status") statuses.set(edit.id, edit.status);
    else isBehind = true;
  }
  return statuses.size < MANY ? undefined : statuses;
}

function applyOneByOne(doc: RoadmapDocument, edits: readonly RoadmapEdit[]): RoadmapDocument {
  const draft = new Draft(doc);
  for (const edit of edits) applyEdit(draft, edit);
  if (edits.every((edit) => edit.kind === "status")) return draft.finish(doc.problems);
  // These edits may affect many nodes or move known problems. So the whole text is read again, which is slow but rare.
  const isSweeping = edits.some((edit) => edit.kind === "set" && edit.field === "parent");
  const isShared = edits.some(isOfOneNode) && ANCHOR.test(doc.text);
  if (isSweeping || isShared || doc.problems.length > 0) {
    const after = parseRoadmap(draft.text);
    if (isShared) refuseSpread(doc, after, edits);
    return refuseNewProblems(doc, after);
  }
  const find = (id: string): RoadmapNode | undefined => findNode(draft, id);
  placeInContainers(draft.nodes, find);
  return refuseNewProblems(doc, draft.finish(checkPlan(draft.nodes, find)));
}

/** From this number on, statuses are set together: setting a single one takes time in proportion to the length of the plan. */
const MANY = 50;
/** Finds a YAML anchor: `&name`, but not the `&&` of a shell. */
const ANCHOR = /(?:^|[\s[{,])&[^\s,&[\]{}]/m;
/** Properties that depend on the place of a node in the file, and not on the text of its item. */
const PLACE = { order: 0, line: 0, col: 0, epic: "", milestone: "" };

function isOfOneNode({ kind }: RoadmapEdit): boolean {
  return kind === "set" || kind === "add-dep" || kind === "remove-dep";
}

/** Refuses edits that also change other nodes, which may copy from an item with an anchor by `<<` or an alias. */
function refuseSpread(
  before: RoadmapDocument,
  after: RoadmapDocument,
  edits: readonly RoadmapEdit[],
): void {
  const meant = new Set(edits.map((edit) => foldId(edit.kind === "add" ? edit.node.id : edit.id)));
  for (const node of before.nodes) {
    if (meant.has(foldId(node.id))) continue;
    const now = findNode(after, node.id);
    if (isDeepStrictEqual({ ...now, ...PLACE }, { ...node, ...PLACE })) continue;
    const ids = edits.filter(isOfOneNode).map((edit) => (edit.kind === "add" ? "" : edit.id));
    throw new ErrInvalidRoadmap(`this would change ${node.id} as well as ${ids.join(", ")}`, {
      phase: "edit",
      hint: `${node.id} copies it (by << or an alias): write out in ${node.id} the values that must stay`,
    });
  }
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
