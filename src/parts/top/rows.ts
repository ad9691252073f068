/** Makes the rows of each pane from the overview. Pure. */
import { type Cause, causeOf } from "../../view/causes.ts";
import type { FailureCauses } from "../../view/failure-causes.ts";
import type { AlertView } from "../../view/latest-alerts.ts";
import type {
  GroupView,
  Overview,
  RunningRow,
  WaitingGroup,
  WaitingTask,
} from "../../view/overview.ts";
import type { Obstacle, QuestionView } from "../../view/snapshot.ts";
import type { TimelineRun } from "../../view/timeline/timeline.ts";

export const PANES = ["running", "waiting", "failed", "notices", "ended", "groups"] as const;

/** The content of a row. */
export type Shown =
  | { kind: "running"; running: RunningRow }
  | { kind: "waiting"; group: WaitingGroup }
  | { kind: "failed"; cause: Cause; titles: FailureCauses["titles"] }
  | { kind: "question"; question: QuestionView }
  | { kind: "obstacle"; obstacle: Obstacle }
  | { kind: "alert"; alert: AlertView }
  | { kind: "ended"; run: TimelineRun }
  | { kind: "group"; group: GroupView }
  | { kind: "task"; id: string; title: string; text: string; due_ms: number | null };

export interface Row {
  /** A row for the same thing has the same key in the next look. */
  key: string;
  /** The tasks that the row stands for; only some if very many wait. */
  ids: readonly string[];
  /** The text that a filter searches. */
  words: string;
  shown: Shown;
}

/**
 * The rows by pane, failures with the newest one first.
 * @param filter keeps only rows that contain this text, upper or lower case
 * @param ended the tasks that ended last, the latest one first
 */
export function rowsOf(
  overview: Overview,
  filter: string,
  ended: readonly TimelineRun[] = [],
): Row[][] {
  const wanted = filter.toLowerCase();
  const panes = [
    overview.running.map(runningRow),
    wanted === ""
      ? overview.waiting.map(waitingRow)
      : overview.waiting.flatMap((group) => waitingRows(group, wanted)),
    [...overview.failures.causes]
      .sort((a, b) => b.last_ms - a.last_ms)
      .map((cause) => failedRow(cause, overview.failures.titles)),
    noticeRows(overview),
    ended.map((run) => endedRow(run, overview.failures.titles)),
    overview.groups.map(groupRow),
  ];
  if (wanted === "") return panes;
  return panes.map((rows) => rows.filter(({ words }) => words.toLowerCase().includes(wanted)));
}

/** For a filter: the tasks of a group one a row, unless the filter means the group itself. */
function waitingRows(group: WaitingGroup, wanted: string): Row[] {
  if (group.text.toLowerCase().includes(wanted)) return [waitingRow(group)];
  return group.tasks.map((task) => taskRow({ ...task, why: task.why || group.text }));
}

/** Whether the row stands for one task, whose own page can be shown. */
export function isOneTask({ shown, ids }: Row): boolean {
  const { kind } = shown;
  return ids.length === 1 && kind !== "waiting" && kind !== "question";
}

/** The tasks of a group, one row each. */
export function tasksOf({ shown }: Row): Row[] {
  switch (shown.kind) {
    case "waiting":
    case "group":
      return shown.group.tasks.map(taskRow);
    case "failed":
      return shown.cause.tasks
        .toReversed()
        .map((id) => taskRow({ id, title: shown.titles[id] ?? "", why: "", due_ms: null }));
    default:
      return [];
  }
}

function taskRow({ id, title = "", why, due_ms }: WaitingTask): Row {
  return {
    key: id,
    ids: [id],
    words: `${id} ${title} ${why}`,
    shown: { kind: "task", id, title, text: why, due_ms },
  };
}

function endedRow(run: TimelineRun, titles: FailureCauses["titles"]): Row {
  const { id, end, why, to_ms: atMs } = run;
  const title = run.title || (titles[id] ?? "");
  return {
    key: `ended ${id} ${atMs}`,
    ids: [id],
    words: `${id} ${title} ${end} ${why}`,
    shown: { kind: "ended", run: { ...run, title } },
  };
}

function groupRow(group: GroupView): Row {
  const { kind, name, why, tasks } = group;
  return {
    key: `${kind} ${name}`,
    ids: [],
    words: `${kind} ${name} ${why ?? ""} ${wordsOf(tasks)}`,
    shown: { kind: "group", group },
  };
}

function wordsOf(tasks: readonly WaitingTask[]): string {
  return tasks.map(({ id, title, why }) => `${id} ${title ?? ""} ${why}`).join(" ");
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
    words: `${group.text} ${wordsOf(group.tasks)}`,
    shown: { kind: "waiting", group },
  };
}

function failedRow(cause: Cause, titles: FailureCauses["titles"]): Row {
  const [first = ""] = cause.tasks;
  return {
    key: `failed ${cause.kind} ${causeOf(cause.error, first)}`,
    ids: cause.tasks,
    words: `${cause.kind} ${cause.error} ${cause.tasks.map((id) => `${id} ${titles[id] ?? ""}`).join(" ")}`,
    shown: { kind: "failed", cause, titles },
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
