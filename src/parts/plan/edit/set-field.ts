/** Sets one of the keys that commands may set, in the text and in the node. */
import { ErrInvalidRoadmap } from "../../../core/errors.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { Draft } from "./draft.ts";
import { renderFlow } from "./flow-text.ts";
import { takeOver } from "./one-item.ts";
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

export const SETTABLE_FIELDS = Object.keys(PROPERTY_OF) as SettableField[];

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
      hint: `known are: ${SETTABLE_FIELDS.join(", ")}`,
    });
  const map = setKey(draft, node, field, renderFlow(value), value);
  takeOver(draft, node, map, field, PROPERTY_OF[field]);
}
