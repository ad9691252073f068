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
  const some = (count: number, text: string): string[] =>
    count === 0 ? [] : [`${countText(count)} ${text}`];
  const ended = [
    `${countText(counts.completed)} completed`,
    `${countText(counts.failed)} failed`,
    ...some(counts.cancelled, "cancelled"),
    ...some(counts.skipped, "skipped"),
    ...some(counts.landed, "landed"),
    ...some(report.work.filter(isUnchecked).length, "landed unchecked"),
    ...some(counts.not_landed, "could not land"),
    ...some(counts.refused, counts.refused === 1 ? "file refused" : "files refused"),
    ...some(counts.with_failed_lines, "with failed lines"),
  ];
  const runs = [
    ...some(
      counts.mended,
      counts.mended === 1
        ? "task failed first and completed later"
        : "tasks failed first and completed later",
    ),
    ...some(
      counts.retries,
      counts.retries === 1 ? "failed run was tried again" : "failed runs were tried again",
    ),
    ...some(
      counts.reclaimed,
      counts.reclaimed === 1
        ? "run was taken back from a dead worker"
        : "runs were taken back from dead workers",
    ),
  ];
  const open = [
    ...some(now.running, "running"),
    ...some(now.waiting, "waiting"),
    ...some(now.held, "held at a gate"),
    ...some(asked.length, asked.length === 1 ? "question for you" : "questions for you"),
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

function questions(report: Report): Section {
  return {
    title: "Waits for your answer",
    columns: [{ title: "ID" }, { title: "SINCE" }],
    rows: report.questions.map(({ id, asked_at_ms: atMs }) => [
      id,
      atMs === null ? "" : localTime(atMs),
    ]),
    texts: { title: "QUESTION", of: report.questions.map((one) => headlineOf(one.question)) },
  };
}

function failures(title: string, causes: readonly Cause[], titles: Report["titles"]): Section {
  const shown = causes.slice(0, ROWS_MAX);
  return {
    title,
    columns: [
      { title: "COUNT", isNumber: true },
      { title: "KIND" },
      { title: "LAST" },
      { title: "TASKS", isText: true },
    ],
    rows: shown.map(({ count, kind, last_ms: lastMs, tasks }) => [
      countText(count),
      kind,
      localTime(lastMs).slice(11),
      idsText(tasks, count),
    ]),
    texts: {
      title: "WHY",
      of: shown.map(({ error, tasks }) => {
        const what = tasks.slice(0, IDS_MAX).flatMap((id) => titles[id] ?? []);
        return what.length === 0 ? error : `${error} (${what.join("; ")})`;
      }),
    },
    ...moreOf(causes.length - shown.length, "more cause", "more causes"),
  };
}

function alerts(report: Report): Section {
  const shown = report.alerts.slice(0, ROWS_MAX);
  return {
    title: "Alerts",
    columns: [{ title: "COUNT", isNumber: true }, { title: "KIND" }, { title: "LAST" }],
    rows: shown.map(({ count, kind, last_ms: lastMs }) => [
      countText(count),
      kind,
      localTime(lastMs).slice(11),
    ]),
    texts: { title: "WHAT", of: shown.map(({ error }) => error) },
    ...moreOf(report.alerts.length - shown.length, "more alert", "more alerts"),
  };
}

function idsText(ids: readonly string[], count: number): string {
  const named = ids.slice(0, IDS_MAX);
  const more = count - named.length;
  return named.join(" ") + (more > 0 ? ` +${countText(more)}` : "");
}

function work(report: Report): Section {
  const shown = report.work.slice(0, ROWS_MAX);
  const words = {
    landed: "landed",
    open: "on its way",
    failed: "could not land",
    branch: "on its branch",
  };
  return {
    title: "Work on branches",
    columns: [
      { title: "TASK" },
      { title: "STATE" },
      { title: "FILES", isNumber: true },
      { title: "LINES" },
    ],
    rows: shown.map((one) => [
      one.task_id,
      isUnchecked(one) ? "landed, unchecked" : words[one.state],
      String(one.files),
      `+${one.insertions} -${one.deletions}`,
    ]),
    texts: {
      title: "WHAT",
      of: shown.map((one) => {
        const title = headlineOf(report.titles[one.task_id] ?? "");
        return title === "" ? whereOf(one) : `${title}: ${whereOf(one)}`;
      }),
    },
    ...moreOf(report.work.length - shown.length, "more task", "more tasks"),
  };
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
  return {
    title: "Completed",
    columns: [
      { title: "WHEN" },
      { title: "TASK", isText: true },
      { title: "AGENT" },
      { title: "RUNS", isNumber: true },
      { title: "WHAT", isText: true },
    ],
    rows: shown.map((one) => [
      localTime(one.at_ms).slice(11),
      one.id,
      one.agent,
      String(one.attempts),
      headlineOf(titles[one.id] ?? ""),
    ]),
    ...moreOf(counts.completed - shown.length, "earlier one", "earlier ones"),
  };
}

function denials({ denials: all }: Report): Section {
  const shown = all.slice(-ROWS_MAX);
  return {
    title: "Tools that were denied",
    columns: [{ title: "TASK", isText: true }],
    rows: shown.map(({ id }) => [id]),
    texts: { title: "TOOLS", of: shown.map(({ tools }) => tools.join(", ")) },
    ...moreOf(all.length - shown.length, "earlier task", "earlier tasks"),
  };
}

function costs({ costs: { rows, total } }: Report): Section {
  const unpriced = total.runs_without_price;
  return {
    title: "Cost",
    columns: [
      { title: "AGENT", isText: true },
      { title: "RUNS", isNumber: true },
      { title: "NOT DONE", isNumber: true },
      { title: "INPUT", isNumber: true },
      { title: "OUTPUT", isNumber: true },
      { title: "USD", isNumber: true },
    ],
    rows: (rows.length > 1 ? [...rows, total] : rows).map((sum) => [
      sum.key,
      countText(sum.runs),
      countText(sum.runs_not_completed),
      countText(sum.input_tokens),
      countText(sum.output_tokens),
      usdText(sum),
    ]),
    ...(unpriced === 0 ? {} : { note: `without a price: ${counted(unpriced, "run")}` }),
  };
}

function gates(report: Report): Section {
  return {
    title: "Waits at gates",
    columns: [
      { title: "GATE", isText: true },
      { title: "WAITS", isNumber: true },
      { title: "IN ALL", isNumber: true },
      { title: "FROM" },
      { title: "TO" },
    ],
    rows: report.gates.map((one) => [
      one.gate,
      countText(one.waits),
      duration(one.total_ms),
      localTime(one.from_ms).slice(11),
      one.to_ms === null ? "still" : localTime(one.to_ms).slice(11),
    ]),
    texts: { title: "WHY", of: report.gates.map((one) => headlineOf(one.why)) },
  };
}

function crashes({ crashes: all, counts }: Report): Section {
  const shown = all.slice(-ROWS_MAX);
  return {
    title: "Crashes survived",
    columns: [{ title: "WHEN" }, { title: "WHAT", isText: true }],
    rows: shown.map(({ at_ms: atMs, what }) => [localTime(atMs).slice(11), what]),
    ...moreOf(counts.crashes - shown.length, "earlier one", "earlier ones"),
  };
}

function slowest(report: Report): Section {
  return {
    title: "Slowest",
    columns: [
      { title: "TOOK", isNumber: true },
      { title: "TASK", isText: true },
      { title: "AGENT" },
    ],
    rows: report.slowest.map((one) => [duration(one.duration_ms), one.id, one.agent]),
  };
}

function moreOf(count: number, one: string, many: string): { note?: string } {
  return count <= 0
    ? {}
    : { note: `and ${count === 1 ? `1 ${one}` : `${countText(count)} ${many}`}` };
}
