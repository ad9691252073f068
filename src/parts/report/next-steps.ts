/** Lists what a person can do next. Pure. */
import { headlineOf } from "../../core/outcome.ts";
import { mendNodes } from "../../core/roadmap.ts";
import { shellWord } from "../../text/shell-word.ts";
import type { Cause } from "../../view/causes.ts";
import type { Work } from "../../view/landing.ts";
import type { Obstacle } from "../../view/snapshot.ts";

export interface NextStep {
  why: string;
  /** A command line to paste, or advice. */
  do: string;
}

interface Sources {
  obstacles: readonly Obstacle[];
  work: readonly Work[];
  failures: readonly Cause[];
  /** The titles of tasks, by id. */
  titles: Readonly<Record<string, string>>;
  /** Whether the id is that of a node of the plan that has failed. */
  isFailedNode: (id: string) => boolean;
}

/** A command line names at most this many tasks. */
const NAMED_MAX = 10;
const STEPS_MAX = 30;

/** First what keeps the pool from moving, with the waiting questions; then work that has not landed; then failures. */
export function nextSteps({
  obstacles,
  work,
  failures,
  titles,
  isFailedNode,
}: Sources): NextStep[] {
  const named = (id: string): string => {
    const title = headlineOf(titles[id] ?? "");
    return title === "" ? id : `${id} (${title})`;
  };
  const steps = [
    ...obstacles.map(({ what, do: todo }) => ({ why: what, do: todo })),
    ...work
      .filter(({ state }) => state === "failed" || state === "branch")
      .map(({ task_id: id, state, why, target }) => ({
        why:
          state === "failed"
            ? `the work of ${named(id)} could not land: ${why}`
            : `the work of ${named(id)} is on its branch, and not in ${target}`,
        do: `mailchute review ${shellWord(id)}`,
      })),
    ...failures.map(({ tasks, error, count }) => ({
      why: count === 1 ? `${tasks[0]} failed: ${error}` : `${count} tasks failed: ${error}`,
      do: failureCommand(tasks, count, isFailedNode),
    })),
  ];
  return steps.slice(0, STEPS_MAX);
}

function failureCommand(
  tasks: readonly string[],
  count: number,
  isFailedNode: Sources["isFailedNode"],
): string {
  const named = tasks.slice(0, NAMED_MAX);
  const nodes = named.filter(isFailedNode).map(shellWord);
  const others = named.filter((id) => !isFailedNode(id)).map(shellWord);
  const verb = count === 1 ? "show" : "retry";
  return [
    ...(others.length > 0 ? [["mailchute", verb, ...others].join(" ")] : []),
    ...(nodes.length > 0 ? [mendNodes(nodes)] : []),
  ].join("; ");
}
