/** Sets the status of a node, or one of the keys that commands may set: in the text, and in the node. */
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import { isContainer, type NodeStatus, type RoadmapNode } from "../../../core/roadmap.ts";
import type { ItemContext } from "../read/item.ts";
import type { Draft } from "./draft.ts";
import { type ItemText, spanOfPair } from "./item-text.ts";
import { decodeAlone } from "./read-alone.ts";
import { setKey } from "./set-key.ts";

/** The property of a node that each key of its item sets. */
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
  expect_files: "expect_files",
  keep_background: "keep_background",
  exec: "exec",
  agent: "agent",
  role: "role",
  capabilities: "capabilities",
  cwd: "cwd",
  env: "env",
  timeout_ms: "timeout_ms",
  budget: "budget",
  payload: "payload",
  reopened: "reopened",
} as const satisfies Record<string, keyof RoadmapNode>;

export type SettableField = keyof typeof PROPERTY_OF;

/** The usual spelling of a status in an item. Other text may look the same, for example a comment. */
const WORD =
  /(?<=(?:^|[\s{,])status:[ \t]+)(?:open|pending|in_progress|blocked|needs_human|done|failed)(?=[\s,}]|$)/;

export function setStatus(draft: Draft, node: RoadmapNode, status: NodeStatus): void {
  const word = status === "open" && node.section === "epics" ? "pending" : status;
  const item = draft.itemOf(node, "status");
  const usual = WORD.exec(item.text);
  const isReplaced = usual !== null && item.replaceWord(usual.index, usual[0], word, "status");
  if (!isReplaced) setKey(item, "status", word);
  draft.change(node, { status });
}

export function setField(
  draft: Draft,
  node: RoadmapNode,
  field: SettableField,
  value: unknown,
): void {
  if (!Object.hasOwn(PROPERTY_OF, field))
    throw new ErrInvalidRoadmap(`${String(field)} cannot be set`, {
      id: node.id,
      phase: "edit",
      hint: `known are: ${Object.keys(PROPERTY_OF).join(", ")}`,
    });
  const item = draft.itemOf(node, field);
  setKey(item, field, value);
  takeOver(draft, item, field, PROPERTY_OF[field]);
}

/** Reads one property of a node again from its changed item. */
export function takeOver(
  draft: Draft,
  item: ItemText,
  key: string,
  property: keyof RoadmapNode,
): void {
  const { id, section, type, parent, order } = item.node;
  const isHeld = section === "epics";
  const context: ItemContext = {
    section,
    type: isHeld && isContainer({ type }) ? type : "task",
    order,
    ...(isHeld && parent !== undefined ? { parent } : {}),
  };
  const decoded = decodeAlone(item.map, id, context, spanOfPair(item.find(key)));
  const value = decoded?.node[property];
  const outdated: (keyof RoadmapNode)[] = property === "parent" ? ["epic", "milestone"] : [];
  if (value === undefined) outdated.push(property);
  draft.change(item.node, { [property]: value }, outdated);
}
