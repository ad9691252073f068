/** Draws the page of an opened row: the tasks of a group, or a task with its log. Pure. */
import { bytesText } from "../../core/bytes-text.ts";
import { inert } from "../../text/inert.ts";
import { clockTime } from "../../text/local-time.ts";
import { ago, countOf, cut, fold, paint, widthOf } from "../../text/render.ts";
import type { TaskPage } from "../../view/task-page.ts";
import { clock, money, sized } from "./cells.ts";
import type { Frame, LogShown, TaskShown } from "./frame.ts";
import { marked, windowOf } from "./pane-lines.ts";
import { drawRows, groupTexts } from "./row-lines.ts";
import { type Row, tasksOf } from "./rows.ts";
import {
  type Cursor,
  chosenIndex,
  type GroupPage,
  rowOfGroup,
  type TaskPageState,
} from "./state.ts";

const ERROR_LINES = 6;
const WHY_LINES = 3;

export function groupLines(frame: Frame, page: GroupPage, width: number, rows: number): string[] {
  const row = rowOfGroup(page, frame.panes);
  if (row === undefined)
    return [sized("nothing is left here: no task waits, fails or asks", width)];
  return textAndTasks(frame, row, page.cursor, { width, rows });
}

/** Draws a row's text in full, what a person can do, and its tasks. @param cursor undefined to mark no task */
export function textAndTasks(
  frame: Frame,
  row: Row,
  cursor: Cursor | undefined,
  { width, rows }: { width: number; rows: number },
): string[] {
  const { look, nowMs } = frame;
  const { text, todo, facts } = describe(row, frame);
  const head = [
    ...fold(text, width).map((line, i) => paint(look.colour && i === 0, "bold", line)),
    ...facts.flatMap((fact) => fold(fact, width)),
    ...(todo === null ? [] : fold(`do: ${todo}`, width)),
  ].slice(0, Math.max(2, Math.ceil(rows / 2)));
  const list = tasksOf(row);
  if (list.length === 0) return head;
  const index = cursor === undefined ? -1 : chosenIndex(list, cursor);
  const room = Math.max(0, rows - head.length - 1);
  const { shown, from } = windowOf(list, Math.max(0, index), room);
  return [
    ...head,
    "",
    ...drawRows(shown, { width, look, nowMs }).map((line, i) =>
      marked(line, from + i === index, look),
    ),
  ];
}

function describe(
  { shown }: Row,
  { look, nowMs }: Frame,
): { text: string; todo: string | null; facts: string[] } {
  switch (shown.kind) {
    case "waiting": {
      const { text, count, tasks, do: todo } = shown.group;
      const number =
        count === null ? "Tasks" : `${countOf(count)} ${count.count === 1 ? "task" : "tasks"}`;
      const verb = count?.count === 1 ? text.replace(/^(?:wait|fit|belong)\b/, "$&s") : text;
      const some =
        tasks.length > 0 && count?.count !== tasks.length ? [`${tasks.length} of them:`] : [];
      return {
        text: `${number} ${inert(verb)}`,
        todo: todo === null ? null : inert(todo),
        facts: some,
      };
    }
    case "failed": {
      const { kind, error, count, first_ms: first, last_ms: last } = shown.cause;
      const when = `${count} times, the first ${ago(first, nowMs)}, the last ${ago(last, nowMs)}`;
      return { text: `${inert(kind)}: ${inert(error)}`, todo: null, facts: [when] };
    }
    case "question": {
      const { id, question, who } = shown.question;
      return {
        text: question.split("\n").map(inert).join(" "),
        todo: `key a, or: mailchute answer ${inert(id)} TEXT`,
        facts: who === "" ? [] : [`Until then ${inert(who)} waits.`],
      };
    }
    case "obstacle":
      return { text: inert(shown.obstacle.what), todo: inert(shown.obstacle.do), facts: [] };
    case "alert":
      return {
        text: inert(shown.alert.message),
        todo: null,
        facts: [`${inert(shown.alert.kind)}, ${ago(shown.alert.at_ms, nowMs)}`],
      };
    case "group": {
      const { counts, texts } = groupTexts(shown.group, look);
      const { kind, name, do: todo } = shown.group;
      return {
        text: `${kind} ${inert(name)}`,
        todo: todo && inert(todo),
        facts: [counts.join("  "), ...texts],
      };
    }
    case "running":
      return { text: inert(shown.running.id), todo: null, facts: [] };
    case "ended":
      return { text: inert(shown.run.id), todo: null, facts: [] };
    case "task":
      return { text: `${inert(shown.id)} ${inert(shown.text)}`, todo: null, facts: [] };
  }
}

/** @param page undefined when the task is shown beside the panes, at the end of its log */
export function taskLines(
  frame: Frame,
  task: TaskShown,
  page: TaskPageState | undefined,
  { width, rows }: { width: number; rows: number },
): { lines: string[]; log: LogShown } {
  const head = taskHead(frame, task, width).slice(0, Math.max(3, rows - 4));
  const room = Math.max(0, rows - head.length - 1);
  const isWrapped = page?.isWrapped === true;
  const { lines, firstStart } = logLines(task, { width, room, isWrapped });
  const { line } = frame.look.signs;
  const title = logTitle(task, page);
  const rule = paint(
    frame.look.colour,
    "dim",
    cut(`${line}${title}${line.repeat(Math.max(0, width - widthOf(title) - 1))}`, width),
  );
  return { lines: [...head, rule, ...lines], log: { rows: room, firstStart } };
}

function logTitle({ log }: TaskShown, page: TaskPageState | undefined): string {
  if (log === undefined) return "no log yet";
  const below = log.page.size - log.page.to;
  const search =
    page === undefined || page.search === "" ? "" : `, searching ${inert(page.search)}`;
  const place = page?.to === undefined ? "follows the end" : `${bytesText(below)} below, G returns`;
  return `${inert(log.name)} ${bytesText(log.page.size)}, ${place}${search}`;
}

function logLines(
  { log }: TaskShown,
  { width, room, isWrapped }: { width: number; room: number; isWrapped: boolean },
): { lines: string[]; firstStart: number } {
  if (log === undefined || room === 0) return { lines: [], firstStart: 0 };
  const { lines, starts } = log.page;
  const drawn: string[] = [];
  let firstStart = log.page.to;
  for (let i = lines.length - 1; i >= 0 && drawn.length < room; i--) {
    const shown = log.toLines(lines[i] ?? "", isWrapped ? width : Number.POSITIVE_INFINITY);
    drawn.unshift(...shown);
    firstStart = starts[i] ?? firstStart;
  }
  return { lines: drawn.slice(-room), firstStart };
}

function taskHead(frame: Frame, task: TaskShown, width: number): string[] {
  const { look, nowMs } = frame;
  const { page, why, id } = task;
  if (page === undefined)
    return [
      paint(look.colour, "bold", cut(inert(id), width)),
      cut("no tray has this task now: it moves, or its record was removed", width),
    ];
  return [
    paint(look.colour, "bold", cut(stateLine(frame, page), width)),
    ...(page.title === "" ? [] : [cut(inert(page.title), width)]),
    ...cutTo(fold(factsLine(page), width), 2),
    ...(why === undefined ? [] : whyLines(why, width)),
    ...errorLines(page, width).map((line) => paint(look.colour, "red", line)),
    ...cutTo(fold(inert(page.path), width), 2),
    ...(page.state === "done" && page.changed_ms !== null
      ? [`completed ${ago(page.changed_ms, nowMs)}`]
      : []),
  ];
}

function cutTo(lines: readonly string[], max: number): readonly string[] {
  return lines.slice(0, max);
}

function stateLine({ overview, nowMs }: Frame, page: TaskPage): string {
  const { id, state, attempt, attempts_max: max, began_ms: began } = page;
  const row = overview?.running.find((one) => one.id === id);
  const run = attempt === null ? "" : ` run ${attempt}${max === null ? "" : ` of ${max}`}`;
  const isOn = state === "running" || state === "settling";
  const since = isOn && began !== null ? `, ${clock(Math.max(0, nowMs - began))}` : "";
  const cost =
    row === undefined || row.cost_usd_micro === null ? "" : `, ${money(row.cost_usd_micro)}`;
  return `${inert(id)}  ${state.toUpperCase()}${state === "waiting" ? "" : run}${since}${cost}`;
}

function factsLine({ agent, group, priority, after, files }: TaskPage): string {
  const parts = [
    ...(agent === null ? [] : [`agent ${inert(agent)}`]),
    ...(group === null ? [] : [`group ${inert(group)}`]),
    ...(priority === null ? [] : [`priority ${priority}`]),
    ...(after.length === 0
      ? []
      : [
          `after ${after.slice(0, 3).map(inert).join(" ")}${after.length > 3 ? ` +${after.length - 3}` : ""}`,
        ]),
    ...files.map(({ name, bytes }) => `${inert(name)} ${bytesText(bytes)}`),
  ];
  return parts.join(", ");
}

function whyLines({ text, do: todo }: NonNullable<TaskShown["why"]>, width: number): string[] {
  const line = `it ${inert(text)}${todo === undefined ? "" : `; do: ${inert(todo)}`}`;
  return fold(line, width).slice(0, WHY_LINES);
}

function errorLines({ error, changed_ms: changed }: TaskPage, width: number): string[] {
  if (error === null) return [];
  const when = changed === null ? "" : ` at ${clockTime(changed)}`;
  const lines = error.text.split("\n").filter((line) => line.trim() !== "");
  const told = [`failed (${inert(error.kind)})${when}`, ...lines.map(inert)];
  return told.flatMap((line) => fold(line, width)).slice(0, ERROR_LINES);
}
