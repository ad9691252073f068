/** Makes the rows of each pane from the overview. Pure. */
import { type Cause, causeOf } from "../../view/causes.ts";
import type { AlertView } from "../../view/latest-alerts.ts";
import type { Overview, RunningRow, WaitingGroup } from "../../view/overview.ts";
import type { Obstacle, QuestionView } from "../../view/snapshot.ts";

export const PANES = ["running", "waiting", "failed", "notices"] as const;

/** The content of a row. */
export type Shown =
  | { kind: "running"; running: RunningRow }
  | { kind: "waiting"; group: WaitingGroup }
  | { kind: "failed"; cause: Cause }
  | { kind: "question"; question: QuestionView }
  | { kind: "obstacle"; obstacle: Obstacle }
  | { kind: "alert"; alert: AlertView }
  | { kind: "task"; id: string; text: string; due_ms: number | null };

export interface Row {
  /** A row for the same thing has the same key in the next look. */
  key: string;
  /** The tasks that the row stands for; only some if very many wait. */
  ids: readonly string[];
  /** The text that a filter searches. */
  words: string;
  shown: Shown;
}

/** The rows by pane. @param filter keeps only rows that contain this text, upper or lower case */
export function rowsOf(overview: Overview, filter: string): Row[][] {
  const wanted = filter.toLowerCase();
  const panes = [
    overview.running.map(runningRow),
    overview.waiting.map(waitingRow),
    overview.failures.causes.map(failedRow),
    noticeRows(overview),
  ];
  if (wanted === "") return panes;
  return panes.map((rows) => rows.filter(({ words }) => words.toLowerCase().includes(wanted)));
}

/** The tasks of a group, one row each. */
export function tasksOf({ shown }: Row): Row[] {
  switch (shown.kind) {
    case "waiting":
      return shown.group.tasks.map(({ id, why, due_ms }) => taskRow(id, why, due_ms));
    case "failed":
      return shown.cause.tasks.map((id) => taskRow(id, "", null));
    default:
      return [];
  }
}

function taskRow(id: string, text: string, due_ms: number | null): Row {
  return {
    key: id,
    ids: [id],
    words: `${id} ${text}`,
    shown: { kind: "task", id, text, due_ms },
  };
}

function runningRow(running: RunningRow): Row {
  const { id, title, agent, last_line: line } = running;
  return {
    key: `running ${id}`,
    ids: [id],
    words: `${id} ${title} ${agent ?? ""} ${line ?? ""}`,
    shown: { kind: "running", running },
  };
}

function waitingRow(group: WaitingGroup): Row {
  const ids = group.tasks.map(({ id }) => id);
  return {
    key: `waiting ${group.code}`,
    ids,
    words: `${group.text} ${group.tasks.map(({ id, why }) => `${id} ${why}`).join(" ")}`,
    shown: { kind: "waiting", group },
  };
}

function failedRow(cause: Cause): Row {
  const [first = ""] = cause.tasks;
  return {
    key: `failed ${cause.kind} ${causeOf(cause.error, first)}`,
    ids: cause.tasks,
    words: `${cause.kind} ${cause.error} ${cause.tasks.join(" ")}`,
    shown: { kind: "failed", cause },
  };
}

function noticeRows({ questions, obstacles, alerts }: Overview): Row[] {
  return [
    ...questions.map(
      (question): Row => ({
        key: `question ${question.id}`,
        ids: [],
        words: `${question.id} ${question.question} ${question.who}`,
        shown: { kind: "question", question },
      }),
    ),
    ...obstacles.map(
      (obstacle): Row => ({
        key: `obstacle ${obstacle.do} ${obstacle.what.replace(/\d+/g, "")}`,
        ids: [],
        words: `${obstacle.what} ${obstacle.do}`,
        shown: { kind: "obstacle", obstacle },
      }),
    ),
    ...alerts.map(
      (alert): Row => ({
        key: `alert ${alert.at_ms} ${alert.message}`,
        ids: [],
        words: `${alert.kind} ${alert.message}`,
        shown: { kind: "alert", alert },
      }),
    ),
  ];
}
