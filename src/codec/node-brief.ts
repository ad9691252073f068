/** Reads from a task's `metadata.roadmap` what its run must know about the node. Invalid values are left out. */
import { compact } from "../core/compact.ts";
import { explainBadKey, explainBadScope } from "../core/kv.ts";
import type { NodeBrief, NodeInput, NodeType } from "../core/roadmap.ts";
import type { Task } from "../core/task.ts";

const TYPES: ReadonlySet<string> = new Set<NodeType>([
  "plan",
  "task",
  "verify",
  "integrate",
  "final_verify",
]);

/** Undefined for a task that was not made from a node of the plan. */
export function readBrief(task: Task): NodeBrief | undefined {
  const raw = task.metadata?.["roadmap"];
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return undefined;
  const said = raw as Record<string, unknown>;
  const title = text(said["title"]) ?? task.title;
  const answers = list(said["answers"]).flatMap((one) => {
    const { question, answer } = (one ?? {}) as Record<string, unknown>;
    return typeof question === "string" && typeof answer === "string" ? [{ question, answer }] : [];
  });
  return compact({
    id: task.id,
    type: TYPES.has(String(said["type"])) ? (said["type"] as NodeType) : "task",
    title: title ?? task.id,
    parent: text(said["parent"]) ?? task.parent_id,
    goal: text(said["goal"]),
    acceptance: list(said["acceptance"]).filter((one) => typeof one === "string"),
    inputs: list(said["inputs"]).flatMap(readInput),
    answers: answers.length === 0 ? undefined : answers,
  });
}

function readInput(raw: unknown): NodeInput[] {
  const { nodeId, key, as } = (raw ?? {}) as Record<string, unknown>;
  if (typeof nodeId !== "string" || typeof key !== "string") return [];
  if (explainBadScope(nodeId) !== undefined || explainBadKey(key) !== undefined) return [];
  return [{ nodeId, key, ...(typeof as === "string" ? { as } : {}) }];
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
