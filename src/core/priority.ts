/** The words for priorities, and the numbers that they stand for in tasks, in nodes of the plan and on the command line. Pure. */

/** Best first. */
export const NODE_PRIORITIES = ["critical", "high", "medium", "low"] as const;
export type NodePriority = (typeof NODE_PRIORITIES)[number];

/** The greatest priority; the least one is its negative. */
export const PRIORITY_MAX = 1_000_000_000;

/** A task without a priority has 0, a node without one is `medium`. */
const NUMBERS: Readonly<Record<NodePriority, number>> = {
  critical: 300,
  high: 200,
  medium: 100,
  low: 0,
};

/** The number that a priority stands for; undefined when it is none. */
export function priorityNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return NODE_PRIORITIES.includes(value as NodePriority)
    ? NUMBERS[value as NodePriority]
    : undefined;
}
