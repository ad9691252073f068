/** Makes the task of a node for its launch. Pure. */
import { compact } from "../../../core/compact.ts";
import { priorityNumber } from "../../../core/priority.ts";
import type { NodeBrief, RoadmapNode } from "../../../core/roadmap.ts";
import type { Task } from "../../../core/task.ts";

export interface Answer {
  question: string;
  answer: string;
}

/**
 * @param agent name of the agent chosen for the node; not used if the node has its own program
 * @param createdAt unix seconds
 */
export function taskOfNode(
  node: RoadmapNode,
  agent: string,
  createdAt: number,
  answers: readonly Answer[],
): Task {
  const { id, type, title, parent, goal, acceptance, inputs } = node;
  const brief: NodeBrief = compact({
    id,
    type,
    title,
    acceptance,
    inputs,
    parent,
    goal,
    answers: answers.length === 0 ? undefined : [...answers],
  });
  return compact({
    id,
    title,
    type,
    priority: priorityNumber(node.priority),
    created_at: createdAt,
    description: goal,
    parent_id: parent,
    epic_id: node.epic,
    max_attempts: node.max_attempts,
    prompt: node.prompt,
    cwd: node.cwd,
    env: node.env,
    timeout_ms: node.timeout_ms,
    payload: node.payload,
    agent: node.exec === undefined ? agent : undefined,
    exec: node.exec,
    capabilities: node.capabilities.length === 0 ? undefined : node.capabilities,
    verify: node.verify.length === 0 ? undefined : node.verify,
    expect_files: node.expect_files,
    keep_background: node.keep_background,
    budget: node.budget,
    metadata: { roadmap: brief },
  });
}

/** The nodes whose values the task's run received. */
export function inputNodesOf(task: unknown): string[] {
  const metadata = (task as { metadata?: { roadmap?: { inputs?: unknown } } } | null)?.metadata;
  const inputs: unknown[] = Array.isArray(metadata?.roadmap?.inputs) ? metadata.roadmap.inputs : [];
  return inputs.map((input) => String((input as { nodeId?: unknown } | null)?.nodeId));
}
