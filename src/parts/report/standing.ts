/** What stands open when the report is made: questions, work that has not landed, and why nothing moves. Reads only. */
import { landingIdOf } from "../../core/landing.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { lookForLanding } from "../../view/landing.ts";
import type { Snapshot } from "../../view/snapshot.ts";
import { takeSnapshot } from "../../view/snapshot-reader.ts";
import { type LandingOrder, listOrders, readLanding } from "../../worker/landing-files.ts";

/** What a task has left on its branch. */
export interface Work {
  task_id: string;
  /** The task that lands it. */
  landing_id: string;
  /** `branch`: it stays there until a person lands it. */
  state: "landed" | "open" | "failed" | "branch";
  why: string;
  branch: string;
  target: string;
  files: number;
  insertions: number;
  deletions: number;
}

export interface OpenQuestion {
  id: string;
  question: string;
  /** Epoch ms; null when it is not known. */
  asked_at_ms: number | null;
}

/** So many are read. */
const WORK_MAX = 1000;

/** All work that mailchute has a note of, by the id of the task. */
export function readWork(tree: StateTree): Work[] {
  return listOrders(tree.dir)
    .sort()
    .slice(0, WORK_MAX)
    .flatMap((id) => {
      const order = readLanding(tree.dir, id, "order");
      return order === undefined ? [] : [workOf(tree, id, order)];
    });
}

function workOf(tree: StateTree, id: string, order: LandingOrder): Work {
  const { branch, target, diffstat } = order;
  const landing = lookForLanding(tree, id);
  return {
    task_id: id,
    landing_id: landing?.id ?? landingIdOf(id),
    state: landing?.state ?? "branch",
    why: landing?.why ?? "",
    branch,
    target,
    files: diffstat.files,
    insertions: diffstat.insertions,
    deletions: diffstat.deletions,
  };
}

export interface Standing {
  snapshot: Snapshot;
  questions: OpenQuestion[];
}

/** @throws a system error when a directory of the tree cannot be read */
export function readStanding(tree: StateTree, nowMs: number): Standing {
  const snapshot = takeSnapshot(tree, nowMs);
  const asking = snapshot.supervisor.document?.plan_holds?.asking ?? [];
  const own = snapshot.questions.map(({ id, question, asked_at_ms }) => ({
    id,
    question,
    asked_at_ms,
  }));
  const ofPlan = asking.map(({ id, question }) => ({
    id,
    question: question ?? "(no question)",
    asked_at_ms: null,
  }));
  return { snapshot, questions: [...own, ...ofPlan] };
}
