/** Makes the buttons of the pages: for a task, a list, the pool, a question, a review. Pure. */
import type { ControlDocument } from "../../core/saved-documents.ts";
import type { Question } from "../../questions/question-file.ts";
import { counted, countText } from "../../text/render.ts";
import type { TaskState } from "../../view/find-task.ts";
import type { Count } from "../../view/scan.ts";
import type { TaskRow } from "../../view/task-rows.ts";
import { type Act, shown } from "./page.ts";
import { type All, IDS_MAX, type Verb } from "./verbs.ts";

/** For more tasks than this the question has their number, and a person types it: see `acts.js`. */
const MANY = 50;

/** @param after what an end of the run loses: "12 min and $1.22" */
export function actsOnTask(id: string, state: TaskState, after = ""): Act[] {
  const name = shown(id);
  const act = (verb: Verb, text: string, ask?: string): Act => ({
    text,
    what: `${verb} ${name}`,
    verb,
    ids: [id],
    ...(ask !== undefined && { ask }),
  });
  if (state === "failed") return [act("retry", "Retry")];
  if (state === "done") return [];
  const isRun = state === "running";
  const what = isRun ? `the run of ${name}${after === "" ? "" : ` after ${after}`}` : name;
  const end = `End ${what} for good? The task stays as failed, and can be retried.`;
  const back = `Stop ${what} and requeue the task? It uses up no attempt.`;
  const cancel = act("cancel", "Cancel…", end);
  return isRun ? [cancel, act("requeue", "Requeue…", back)] : [cancel];
}

/** The button for several tasks that a person sees together. */
export function retryThese(ids: readonly string[]): Act[] {
  if (ids.length === 0) return [];
  const some = ids.slice(0, IDS_MAX);
  const name = some.length === 1 ? shown(some[0]) : counted(some.length, "task");
  const text = some.length < ids.length ? `Retry the first ${some.length}` : "Retry";
  return [{ text, what: `retry ${name}`, verb: "retry", ids: some }];
}

/** Buttons for the tasks that a search has found: retry for those that have failed, cancel for those that have not ended. */
export function actsOnThese(rows: readonly Pick<TaskRow, "id" | "state">[]): Act[] {
  const idsOf = (isOf: (state: string) => boolean): string[] =>
    rows
      .filter(({ state }) => isOf(state))
      .map(({ id }) => id)
      .slice(0, IDS_MAX);
  const failed = idsOf((state) => ["failed", "cancelled", "skipped"].includes(state));
  const open = idsOf((state) => !["failed", "cancelled", "skipped", "done"].includes(state));
  const name = counted(open.length, "task");
  const cancel: Act = {
    text: `Cancel these ${open.length}…`,
    what: `cancel ${name}`,
    verb: "cancel",
    ids: open,
    ask: `End ${name} for good? They stay as failed, and can be retried.`,
  };
  const retry = retryThese(failed).map((act) => ({ ...act, text: `Retry these ${failed.length}` }));
  return open.length === 0 ? retry : [...retry, cancel];
}

/** Buttons for all tasks of a filtered list. @param count the number of tasks, or a lower bound of it */
export function actsOnList({ state, q }: Pick<All, "state" | "q">, count: Count): Act[] {
  if (state === "done") return [];
  const which = `all that are ${state}${q === "" ? "" : ` and begin with ${shown(q)}`}`;
  const named = `${which}${count.count > MANY ? ` (${numberOf(count)})` : ""}`;
  const [verb, text, ask] =
    state === "failed"
      ? (["retry", "Retry", `Retry ${named}?`] as const)
      : ([
          "cancel",
          "Cancel",
          `End ${named} for good? They stay as failed, and can be retried.`,
        ] as const);
  const all = { all: { state, q }, count: count.count };
  return [{ text: `${text} all of these…`, what: `${verb} ${which}`, verb, ask, ...all }];
}

function numberOf({ count, is_exact: isExact }: Count): string {
  return isExact ? counted(count, "task") : `more than ${countText(count)} tasks`;
}

/** @param slots the slots of all worker processes together */
export function actsOnPool({ paused }: Pick<ControlDocument, "paused">, slots: number): Act[] {
  const workers = (number: number): Act => ({
    text: number > slots ? "Add a slot" : "Remove a slot",
    what: `set slots to ${number}`,
    verb: "workers",
    number,
  });
  return [
    paused
      ? { text: "Resume", what: "resume", verb: "resume" }
      : { text: "Pause", what: "pause", verb: "pause" },
    workers(slots + 1),
    ...(slots > 0 ? [workers(slots - 1)] : []),
  ];
}

/** Two buttons for a question about a limit, and a field for other answers. */
export function answersTo({ id }: Pick<Question, "id">, expects: Question["expects"]): Act[] {
  const what = `answer ${shown(id)}`;
  const click = (words: string): Act => ({ text: words, what, verb: "answer", ids: [id], words });
  const field: Act = {
    text: "Answer",
    what,
    verb: "answer",
    ids: [id],
    field: expects === "limit" ? "new limit" : "answer",
  };
  return expects === "limit" ? [click("yes"), click("no"), field] : [field];
}

/** The facts of a work that its buttons need. */
export interface WorkFacts {
  task_id: string;
  agent: string;
  target: string;
  /** Protected files that it changes. */
  protected: readonly string[];
  reviewer: { name: string; verdict: string | null } | null;
}

/** Lands the work, and says what a person lets pass by that. */
export function actsOnReview(work: WorkFacts): Act[] {
  const { task_id: id, target, protected: files, reviewer } = work;
  const name = shown(id);
  const land = (verb: Act["verb"], text: string, but = ""): Act => ({
    text,
    what: `land ${name}`,
    verb,
    ids: [id],
    ask: `Bring the work of ${name} into ${shown(target)}${but}? Its checks run once more before that.`,
  });
  if (reviewer !== null && reviewer.verdict !== "pass") {
    const but = `, without a pass of ${shown(reviewer.name)}`;
    return [land("land", "Land…"), land("land-unreviewed", "Land without the review…", but)];
  }
  if (reviewer === null && files.length > 0) {
    const which = `, although it changes ${counted(files.length, "protected file")}`;
    return [land("land-protected", "Approve the protected files and land…", which)];
  }
  return [land("land", "Approve and land…")];
}

/** Gives the work back to its agent, with what a person says about it. */
export function rejectIt({ task_id: id, agent }: WorkFacts): Act {
  const name = shown(id);
  const ask = `Send the work of ${name} back to ${shown(agent)}, with these words?`;
  const label = "what is wrong";
  return { text: "Reject…", what: `reject ${name}`, verb: "reject", ids: [id], field: label, ask };
}
