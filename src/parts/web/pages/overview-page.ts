/** The first page: it shows the data of `top` as tables. Pure. */
import { countText, duration, safe } from "../../../text/render.ts";
import { causeOf } from "../../../view/causes.ts";
import type { MinuteCounts } from "../../../view/done-rate.ts";
import { changeText, type Work } from "../../../view/landing.ts";
import type { Overview, RunningRow, WaitingGroup } from "../../../view/overview.ts";
import type { Count } from "../../../view/scan.ts";
import { progressText } from "../../../view/task-progress.ts";
import { actsOnPool, answersTo, retryThese } from "../buttons.ts";
import {
  type Block,
  type Cell,
  linkToTask,
  type Page,
  type Pill,
  pathWith,
  shown,
  timeOf,
  usd,
  workPath,
} from "../page.ts";
import { STATES } from "./review-page.ts";

const TASKS_NAMED_MAX = 5;
const HEARTBEAT_LATE_MS = 5000;
const WORK_MAX = 20;
const OBSTACLE: Pill = { look: "bad", word: "obstacle" };
const PAUSED: Pill = { look: "warn", word: "paused" };

export interface MoreOfPool {
  charts: Block[];
  /** How much room the disk has. */
  disk: string;
  /** The work that has not landed. */
  work: readonly Work[];
}

export function overviewPage(overview: Overview, more: MoreOfPool): Page {
  const { health, alerts } = overview;
  return {
    title: "Overview",
    command: "mailchute top",
    health: { state: health.state, text: safe(health.text) },
    blocks: [
      needsYou(overview, more.work),
      countsOf(overview, more.disk),
      {
        kind: "acts",
        label: "pool",
        acts: actsOnPool({ paused: overview.paused !== null }, overview.slots.total),
      },
      ...more.charts,
      {
        kind: "table",
        title: "Running",
        columns: ["task", "run", "for", "agent", "cost", "progress"],
        rows: overview.running.map(runningCells),
        none: "nothing runs",
      },
      {
        kind: "table",
        title: "Waiting, and why",
        columns: ["tasks", "why", "first", "do"],
        rows: overview.waiting.map(waitingCells),
        none: "nothing waits",
      },
      failuresOf(overview),
      {
        kind: "table",
        title: "Alerts of the last day",
        columns: ["when", "what"],
        rows: alerts.map((one) => [timeOf(one.at_ms), shown(one.message)]),
        none: "no alert",
      },
      workersOf(overview),
    ],
  };
}

/** What does not go on without a person. */
function needsYou(overview: Overview, work: readonly Work[]): Block {
  return {
    kind: "table",
    title: "Needs you",
    columns: ["state", "what", "asked by", "since", "do"],
    rows: waitsForPerson(overview, work),
    none: "nothing needs you",
  };
}

/** Rows of state, what, who asks, since when, and what to do. */
export function waitsForPerson(
  { obstacles, paused, questions }: Overview,
  work: readonly Work[],
): Cell[][] {
  const waits = work.filter(({ state }) => state === "branch" || state === "failed");
  return [
    ...obstacles.map((one): Cell[] => [OBSTACLE, shown(one.what), "", "", shown(one.do)]),
    ...(paused === null ? [] : [[PAUSED, safe(paused), "", "", "mailchute resume"]]),
    ...questions.map((one): Cell[] => [
      { look: "warn", word: "question" },
      { text: shown(one.question), to: "/questions", small: shown(one.id) },
      shown(one.who),
      timeOf(one.asked_at_ms || null),
      { acts: answersTo(one, one.expects) },
    ]),
    ...waits
      .slice(0, WORK_MAX)
      .map((one): Cell[] => [
        STATES[one.state],
        { ...linkToTask(one.task_id, one.title), to: workPath(one.task_id) },
        shown(one.why),
        "",
        `review ${changeText(one)}`,
      ]),
  ];
}

function workersOf({ workers }: Overview): Block {
  return {
    kind: "table",
    title: "Worker processes",
    columns: ["worker", "pid", "slots", "state", "last heartbeat"],
    rows: workers.map(({ id, pid, slots, verdict, heartbeat_age_ms: ageMs }) => [
      shown(id),
      String(pid),
      String(slots),
      shown(verdict),
      // An age below the limit is not shown, so that the text changes only when the heartbeat is late.
      ageMs < HEARTBEAT_LATE_MS ? "just now" : `${duration(Math.floor(ageMs / 1000) * 1000)} ago`,
    ]),
    none: "no worker process",
  };
}

function countsOf({ counts, slots, minutes, run_time: time, cost }: Overview, disk: string): Block {
  const { waiting, ready, delayed, held, running, elsewhere, done, failed, skipped } = counts;
  const waits = { ...waiting, count: waiting.count + ready + delayed + held };
  const state = (text: string, name: string): Cell => ({
    text,
    to: pathWith("/tasks", { state: name }),
  });
  const spent = cost.today_usd_micro;
  const facts: [string, Cell][] = [
    ["waiting", state(countOf(waits), "waiting")],
    ["running", state(countText(running), "running")],
    ...(elsewhere === 0 ? [] : [["at other machines", countText(elsewhere)] as [string, Cell]]),
    ["done", state(countOf(done), "done")],
    ["failed", state(countOf(failed), "failed")],
    ...(skipped.count === 0 ? [] : [["skipped", countOf(skipped)] as [string, Cell]]),
    ["slots", `${countText(slots.busy)} of ${countText(slots.total)} busy`],
    ["last minute", minuteText(minutes)],
    [
      "run time",
      time === null ? "–" : `p50 ${duration(time.p50_ms)}, p95 ${duration(time.p95_ms)}`,
    ],
  ];
  if (disk !== "") facts.push(["disk", disk]);
  if (spent !== null)
    facts.push([
      "cost today",
      {
        text: `${usd(spent)}${cost.is_complete ? "" : " or more"}`,
        to: pathWith("/costs", { by: "agent", since: "24h" }),
      },
    ]);
  return { kind: "facts", facts };
}

/** Counts of the last whole minute. */
function minuteText({ completed, failed }: MinuteCounts): string {
  const of = (counts: readonly (number | null)[]): string => {
    const count = counts.at(-2) ?? null;
    return count === null ? "?" : countText(count);
  };
  return `${of(completed)} done, ${of(failed)} failed`;
}

function runningCells(row: RunningRow): Cell[] {
  const { attempt, attempts_max: max, progress, last_line: line, cost_usd_micro: cost } = row;
  const place = row.machine === null ? "" : `at ${row.machine}: `;
  return [
    linkToTask(row.id, row.title),
    `${attempt === 0 ? "?" : attempt}${max === null ? "" : ` of ${max}`}`,
    row.age_ms === null ? "–" : duration(Math.floor(row.age_ms / 1000) * 1000),
    shown(row.agent ?? "exec"),
    usd(cost),
    row.is_alive ? saidOf(progress, place, line ?? "") : "its process is dead",
  ];
}

function saidOf(progress: RunningRow["progress"], place: string, line: string): Cell {
  if (progress === null) return shown(place + line);
  const { pct } = progress;
  const text = shown(place + progressText(progress, false));
  return pct === null ? text : { pct, text };
}

function waitingCells({ count, text, tasks, do: todo }: WaitingGroup): Cell[] {
  const [first] = tasks;
  return [
    count === null ? "–" : countOf(count),
    shown(text),
    first === undefined ? "" : linkToTask(first.id),
    shown(todo ?? ""),
  ];
}

function failuresOf({ failures, counts }: Overview): Block {
  const { causes, grouped, is_all: isAll } = failures;
  return {
    kind: "table",
    title: isAll
      ? "Failed, by cause"
      : `Failed, by cause (the latest ${countText(grouped)} of ${countOf(counts.failed)})`,
    columns: ["times", "kind", "error", "last", "tasks", "again"],
    rows: causes.map(({ count, kind, error, last_ms: lastMs, tasks }) => [
      {
        text: countText(count),
        to: pathWith("/tasks", { state: "failed", cause: causeOf(error, tasks[0] ?? "") }),
      },
      shown(kind),
      shown(error),
      timeOf(lastMs),
      tasks.length === 1
        ? linkToTask(tasks[0] ?? "")
        : shown(tasks.slice(0, TASKS_NAMED_MAX).join(" ")),
      { acts: retryThese(tasks) },
    ]),
    none: "nothing has failed",
  };
}

function countOf({ count, is_exact: isExact, is_old: isOld }: Count): string {
  return isOld === true ? `~${countText(count)}` : countText(count, isExact);
}
