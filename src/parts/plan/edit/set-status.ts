/** Sets the status of a node, in the text and in the node. */
import type { NodeStatus, RoadmapNode } from "../../../core/roadmap.ts";
import type { Draft } from "./draft.ts";
import { getNode } from "./one-item.ts";
import { setKey } from "./set-key.ts";

/** The word of the file for a status. */
export function wordOf({ section }: RoadmapNode, status: NodeStatus): string {
  return status === "open" && section === "epics" ? "pending" : status;
}

export function setStatus(draft: Draft, node: RoadmapNode, status: NodeStatus): void {
  const word = wordOf(node, status);
  setKey(draft, node, "status", word, word);
  draft.replaceNode(getNode(draft, node.id), { status });
}
