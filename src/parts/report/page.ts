/** Lays the report out as a page of sections, which the formats print. Pure. It does not escape texts; each format does. */
import { usdText } from "../../agents/cost-sums.ts";
import { headlineOf } from "../../core/outcome.ts";
import { localTime } from "../../text/local-time.ts";
import { counted, countText, duration } from "../../text/render.ts";
import type { Cause } from "../../view/causes.ts";
import type { NextStep } from "./next-steps.ts";
import type { Report } from "./report.ts";

interface PageColumn {
  title: string;
  isNumber?: boolean;
  /** The column may be cut. */
  isText?: boolean;
}

export interface Section {
  title: string;
  columns: PageColumn[];
  rows: string[][];
  /** A longer text for each row, which must not be cut. */
  texts?: { title: string; of: string[] };
  /** A line below the table. */
  note?: string;
}

export interface Page {
  title: string;
  /** Lines below the title. */
  lead: string[];
  sections: Section[];
  next: NextStep[];
}

const ROWS_MAX = 20;
const IDS_MAX = 4;

export function pageOf(report: Report): Page {
  const sections = [
    questions(report),
    failures("Failed, by cause", report.failures, report.titles),
    failures("Refused files", report.refused, {}),
    work(report),
    completed(report),
    denials(report),
    costs(report),
    gates(report),
    crashes(report),
    slowest(report),
    alerts(report),
  ].filter(({ rows }) => rows.length > 0);
  return {
    title: `Report, ${timeText(report.from)} to ${timeText(report.to)}`,
    lead: leadOf(report),
    sections,
    next: report.next,
  };
}

/** ISO 8601 to local time. */
function timeText(iso: string): string {
  return localTime(Date.parse(iso));
}

function leadOf(report: Report): string[] {
  const { counts, now, questions: asked, bad_lines: bad } = report;
  const { total } = report.costs;
  const some = (count: number, one: string, many = one): string[] =>
    count === 0 ? [] : [`${countText(count)} ${count === 1 ? one : many}`];
  const ended = [
    `${countText(counts.completed)} completed`,
    `${countText(counts.failed)} failed`,
    ...some(counts.cancelled, "cancelled"),
    ...some(counts.skipped, "skipped"),
    ...some(counts.landed, "landed"),
    ...some(report.work.filter(isUnchecked).length, "landed unchecked"),
    ...some(counts.not_landed, "could not land"),
    ...some(counts.refused, "file refused", "files refused"),
    ...some(counts.with_failed_lines, "with failed lines"),
  ];
  const runs = [
    ...some(
      counts.mended,
      "task failed first and completed later",
      "tasks failed first and completed later",
    ),
    ...some(counts.retries, "failed run was tried again", "failed runs were tried again"),
    ...some(
      counts.reclaimed,
      "run was taken back from a dead worker",
      "runs were taken back from dead workers",
    ),
  ];
  const open = [
    ...some(now.running, "running"),
    ...some(now.waiting, "waiting"),
    ...some(now.held, "held at a gate"),
    ...some(asked.length, "question for you", "questions for you"),
  ];
  return [
    ended.join(", "),
    ...(runs.length === 0 ? [] : [runs.join(", ")]),
    ...timesOf(report),
    `now: ${open.length === 0 ? "nothing runs or waits" : open.join(", ")}`,
    ...(total.runs === 0
      ? []
      : [`${usdText(total)} USD in ${counted(total.runs, "run")} of coding agents`]),
    ...(bad === 0 ? [] : [`${counted(bad, "line")} of the journals could not be read`]),
  ];
}

function timesOf({ waited_ms: waited, ran_ms: ran }: Report): string[] {
  const some = (name: string, { p50, p95 }: Report["ran_ms"]): string[] =>
    p50 === null || p95 === null ? [] : [`${name} p50 ${duration(p50)}, p95 ${duration(p95)}`];
  const times = [...some("in the inbox", waited), ...some("run time", ran)];
  return times.length === 0 ? [] : [times.join("; ")];
}

/** A column: its title and how it is set, and what a row has in it. `words` are a longer text, which must not be cut. */
type ColumnOf<T> = [
  title: string,
  is: "" | "number" | "text" | "words",
  cellOf: (row: T) => string,
];

/** @param more how many more rows there are, and what they are, if there is one and if there are more */
function section<T>(
  title: string,
  rows: readonly T[],
  columns: readonly ColumnOf<T>[],
  more?: [count: number, one: string, many: string],
): Section {
  const cells = columns.filter(([, is]) => is !== "words");
  const words = columns.find(([, is]) => is === "words");
  return {
    title,
    columns: cells.map(([head, is]) => ({
      title: head,
      ...(is === "number" && { isNumber: true }),
      ...(is === "text" && { isText: true }),
    })),
    rows: rows.map((row) => cells.map(([, , cellOf]) => cellOf(row))),
    ...(words !== undefined && { texts: { title: words[0], of: rows.map(words[2]) } }),
    ...(more !== undefined && moreOf(...more)),
  };
}

function questions(report: Report): Section {
  return section("Waits for your answer", report.questions, [
    ["ID", "", ({ id }) => id],
    ["SINCE", "", ({ asked_at_ms: atMs }) => (atMs === null ? "" : localTime(atMs))],
    ["QUESTION", "words", ({ question }) => headlineOf(question)],
  ]);
}

const CAUSE_COLUMNS: readonly ColumnOf<Cause>[] = [
  ["COUNT", "number", ({ count }) => countText(count)],
  ["KIND", "", ({ kind }) => kind],
  ["LAST", "", ({ last_ms: lastMs }) => timeOfDay(lastMs)],
];

function failures(title: string, causes: readonly Cause[], titles: Report["titles"]): Section {
  const shown = causes.slice(0, ROWS_MAX);
  const why = ({ error, tasks }: Cause): string => {
    const what = tasks.slice(0, IDS_MAX).flatMap((id) => titles[id] ?? []);
    return what.length === 0 ? error : `${error} (${what.join("; ")})`;
  };
  return section(
    title,
    shown,
    [
      ...CAUSE_COLUMNS,
      ["TASKS", "text", ({ tasks, count }) => idsText(tasks, count)],
      ["WHY", "words", why],
    ],
    [causes.length - shown.length, "more cause", "more causes"],
  );
}

function alerts({ alerts: all }: Report): Section {
  const shown = all.slice(0, ROWS_MAX);
  return section(
    "Alerts",
    shown,
    [...CAUSE_COLUMNS, ["WHAT", "words", ({ error }) => error]],
    [all.length - shown.length, "more alert", "more alerts"],
  );
}

function idsText(ids: readonly string[], count: number): string {
  const named = ids.slice(0, IDS_MAX);
  const more = count - named.length;
  return named.join(" ") + (more > 0 ? ` +${countText(more)}` : "");
}

const WORK_WORDS = {
  landed: "landed",
  open: "on its way",
  failed: "could not land",
  branch: "on its branch",
};

function work(report: Report): Section {
  const shown = report.work.slice(0, ROWS_MAX);
  const what = (one: Report["work"][number]): string => {
    const title = headlineOf(report.titles[one.task_id] ?? "");
    return title === "" ? whereOf(one) : `${title}: ${whereOf(one)}`;
  };
  return section(
    "Work on branches",
    shown,
    [
      ["TASK", "", ({ task_id: id }) => id],
      ["STATE", "", (one) => (isUnchecked(one) ? "landed, unchecked" : WORK_WORDS[one.state])],
      ["FILES", "number", ({ files }) => String(files)],
      ["LINES", "", ({ insertions, deletions }) => `+${insertions} -${deletions}`],
      ["WHAT", "words", what],
    ],
    [report.work.length - shown.length, "more task", "more tasks"],
  );
}

function isUnchecked({ state, checked }: Report["work"][number]): boolean {
  return state === "landed" && !checked;
}

function whereOf({ state, target, branch, why }: Report["work"][number]): string {
  if (state === "landed") return `on ${target}`;
  return state === "branch" ? `on ${branch}` : headlineOf(why);
}

function completed({ completed: all, counts, titles }: Report): Section {
  const shown = all.slice(-ROWS_MAX);
  return section(
    "Completed",
    shown,
    [
      ["WHEN", "", ({ at_ms: atMs }) => timeOfDay(atMs)],
      ["TASK", "text", ({ id }) => id],
      ["AGENT", "", ({ agent }) => agent],
      ["RUNS", "number", ({ attempts }) => String(attempts)],
      ["WHAT", "text", ({ id }) => headlineOf(titles[id] ?? "")],
    ],
    [counts.completed - shown.length, "earlier one", "earlier ones"],
  );
}

function denials({ denials: all }: Report): Section {
  const shown = all.slice(-ROWS_MAX);
  return section(
    "Tools that were denied",
    shown,
    [
      ["TASK", "text", ({ id }) => id],
      ["TOOLS", "words", ({ tools }) => tools.join(", ")],
    ],
    [all.length - shown.length, "earlier task", "earlier tasks"],
  );
}

function costs({ costs: { rows, total } }: Report): Section {
  const unpriced = total.runs_without_price;
  const all = rows.length > 1 ? [...rows, total] : rows;
  const made = section("Cost", all, [
    ["AGENT", "text", ({ key }) => key],
    ["RUNS", "number", ({ runs }) => countText(runs)],
    ["NOT DONE", "number", (sum) => countText(sum.runs_not_completed)],
    ["INPUT", "number", (sum) => countText(sum.input_tokens)],
    ["OUTPUT", "number", (sum) => countText(sum.output_tokens)],
    ["USD", "number", usdText],
  ]);
  return unpriced === 0 ? made : { ...made, note: `without a price: ${counted(unpriced, "run")}` };
}

function gates(report: Report): Section {
  return section("Waits at gates", report.gates, [
    ["GATE", "text", ({ gate }) => gate],
    ["WAITS", "number", ({ waits }) => countText(waits)],
    ["IN ALL", "number", ({ total_ms: ms }) => duration(ms)],
    ["FROM", "", ({ from_ms: fromMs }) => timeOfDay(fromMs)],
    ["TO", "", ({ to_ms: toMs }) => (toMs === null ? "still" : timeOfDay(toMs))],
    ["WHY", "words", ({ why }) => headlineOf(why)],
  ]);
}

function crashes({ crashes: all, counts }: Report): Section {
  const shown = all.slice(-ROWS_MAX);
  return section(
    "Crashes survived",
    shown,
    [
      ["WHEN", "", ({ at_ms: atMs }) => timeOfDay(atMs)],
      ["WHAT", "text", ({ what }) => what],
    ],
    [counts.crashes - shown.length, "earlier one", "earlier ones"],
  );
}

function slowest(report: Report): Section {
  return section("Slowest", report.slowest, [
    ["TOOK", "number", ({ duration_ms: ms }) => duration(ms)],
    ["TASK", "text", ({ id }) => id],
    ["AGENT", "", ({ agent }) => agent],
  ]);
}

/** `07:00`. */
function timeOfDay(ms: number): string {
  return localTime(ms).slice(11);
}

function moreOf(count: number, one: string, many: string): { note?: string } {
  return count <= 0
    ? {}
    : { note: `and ${count === 1 ? `1 ${one}` : `${countText(count)} ${many}`}` };
}
