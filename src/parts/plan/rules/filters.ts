/** Selects the nodes of an epic, a milestone, a domain or a status. Pure. */
import { foldId } from "../../../core/names.ts";
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";

export interface PlanFilters {
  /** Ids; upper and lower case are the same. */
  epic?: string;
  milestone?: string;
  domain?: string;
  status?: NodeStatus;
}

/** Undefined when the filters let every node pass. */
export function makeFilter(
  filters: PlanFilters = {},
): ((node: RoadmapNode) => boolean) | undefined {
  const { domain, status } = filters;
  const epic = filters.epic === undefined ? undefined : foldId(filters.epic);
  const milestone = filters.milestone === undefined ? undefined : foldId(filters.milestone);
  if (Object.values(filters).every((one) => one === undefined)) return undefined;
  return (node) =>
    (status === undefined || node.status === status) &&
    (domain === undefined || node.domain === domain) &&
    (epic === undefined || (node.epic !== undefined && foldId(node.epic) === epic)) &&
    (milestone === undefined ||
      (node.milestone !== undefined && foldId(node.milestone) === milestone));
}
