/** Reads what is open when the report is made: questions, and why nothing moves. Only reads. */
import type { StateTree } from "../../core/state-tree.ts";
import type { Snapshot } from "../../view/snapshot.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { nodeQuestions } from "../../view/supervisor.ts";

export interface OpenQuestion {
  id: string;
  question: string;
  /** Epoch ms; null when it is not known. */
  asked_at_ms: number | null;
}

export interface Standing {
  snapshot: Snapshot;
  questions: OpenQuestion[];
}

/** @throws a system error when a directory of the tree cannot be read */
export function readStanding(tree: StateTree, nowMs: number): Standing {
  const snapshot = takeSnapshot(tree, nowMs);
  const own = snapshot.questions.map(({ id, question, asked_at_ms }) => ({
    id,
    question,
    asked_at_ms,
  }));
  const ofPlan = [...nodeQuestions(snapshot.supervisor)].map(([id, question]) => ({
    id,
    question: question || "(no question)",
    asked_at_ms: null,
  }));
  return { snapshot, questions: [...own, ...ofPlan] };
}
