/** Reads what is open when the report is made: questions, and why nothing moves. Only reads. */
import type { StateTree } from "../../core/state-tree.ts";
import { questionsOf } from "../../view/make-overview.ts";
import type { Snapshot } from "../../view/snapshot.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";

export interface OpenQuestion {
  id: string;
  question: string;
  /** Epoch ms; null when it is not known. */
  asked_at_ms: number | null;
}

export interface OpenWork {
  snapshot: Snapshot;
  questions: OpenQuestion[];
}

/** @throws a system error when a directory of the tree cannot be read */
export function readOpenWork(tree: StateTree, nowMs: number): OpenWork {
  const snapshot = takeSnapshot(tree, nowMs);
  const questions = questionsOf(snapshot).map(({ id, question, asked_at_ms: atMs }) => ({
    id,
    question,
    asked_at_ms: atMs > 0 ? atMs : null,
  }));
  return { snapshot, questions };
}
