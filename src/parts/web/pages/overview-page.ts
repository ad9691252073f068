/** The first page: it shows the data of `top` as tables. Pure. */
import { countOf, countText, duration, safe } from "../../../text/render.ts";
import { causeOf } from "../../../view/causes.ts";
import type { MinuteCounts } from "../../../view/done-rate.ts";
import { changeText, type Work } from "../../../view/landing.ts";
import type { Overview, RunningRow, WaitingGroup } from "../../../view/overview.ts";
import { progressText } from "../../../view/task-progress.ts";
import { actsOnPool, answersTo, retryThese } from "../buttons.ts";
import {
  actsBlock,
  type Block,
  type Cell,
  factsOf,
  linkToTask,
  linkToWork,
  type Page,
  type Pill,
  pathWith,
  seconds,
  shown,
  table,
  timeOf,
  usd,
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
      countFacts(overview, more.disk),
      ...actsBlock("pool", actsOnPool({ paused: overview.paused !== null }, overview.slots.total)),
      ...more.charts,
      table(
        "Running",
        ["task", "run", "for", "agent", "cost", "progress"],
        overview.running.map(runningCells),
        "nothing runs",
      ),
      table(
        "Waiting, and why",
        ["tasks", "why", "first", "do"],
        overview.waiting.map(waitingCells),
        "nothing waits",
      ),
      failuresOf(overview),
      table(
        "Alerts of the last day",
        ["when", "what"],
        alerts.map((one) => [timeOf(one.at_ms), shown(one.message)]),
        "no alert",
      ),
      workersOf(overview),
    ],
  };
}

/** What does not go on without a person. */
function needsYou(overview: Overview, work: readonly Work[]): Block {
  const columns = ["state", "what", "asked by", "since", "do"];
  return table("Needs you", columns, waitsForPerson(overview, work), "nothing needs you");
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
        linkToWork(one),
        shown(one.why),
        "",
        `review ${changeText(one)}`,
      ]),
  ];
}

function workersOf({ workers }: Overview): Block {
  const rows = workers.map(({ id, pid, slots, verdict, heartbeat_age_ms: ageMs }) => [
    shown(id),
    String(pid),
    String(slots),
    shown(verdict),
    // An age below the limit is not shown, so that the text changes only when the heartbeat is late.
    ageMs < HEARTBEAT_LATE_MS ? "just now" : `${seconds(ageMs)} ago`,
  ]);
  const columns = ["worker", "pid", "slots", "state", "last heartbeat"];
  return table("Worker processes", columns, rows, "no worker process");
}

function countFacts(
  { counts, slots, minutes, run_time: time, cost }: Overview,
  disk: string,
): Block {
  const { waiting, ready, delayed, held, running, elsewhere, done, failed, skipped } = counts;
  const waits = { ...waiting, count: waiting.count + ready + delayed + held };
  const state = (text: string, name: string): Cell => ({
    text,
    to: pathWith("/tasks", { state: name }),
  });
  const spent = cost.today_usd_micro;
  const spentCell = {
    text: `${usd(spent)}${cost.is_complete ? "" : " or more"}`,
    to: pathWith("/costs", { by: "agent", since: "24h" }),
  };
  const timeText =
    time === null ? "–" : `p50 ${duration(time.p50_ms)}, p95 ${duration(time.p95_ms)}`;
  return factsOf([
    ["waiting", state(countOf(waits), "waiting")],
    ["running", state(countText(running), "running")],
    ["at other machines", elsewhere === 0 ? null : countText(elsewhere)],
    ["done", state(countOf(done), "done")],
    ["failed", state(countOf(failed), "failed")],
    ["skipped", skipped.count === 0 ? null : countOf(skipped)],
    ["slots", `${countText(slots.busy)} of ${countText(slots.total)} busy`],
    ["last minute", minuteText(minutes)],
    ["run time", timeText],
    ["disk", disk || null],
    ["cost today", spent === null ? null : spentCell],
  ]);
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
    row.age_ms === null ? "–" : seconds(row.age_ms),
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
    first === undefined ? "" : linkToTask(first.id, first.title),
    shown(todo ?? ""),
  ];
}

function failuresOf({ failures, counts }: Overview): Block {
  const { causes, titles, grouped, is_all: isAll } = failures;
  const some = isAll ? "" : ` (the latest ${countText(grouped)} of ${countOf(counts.failed)})`;
  const rows = causes.map(({ count, kind, error, last_ms: lastMs, tasks }) => [
    {
      text: countText(count),
      to: pathWith("/tasks", { state: "failed", cause: causeOf(error, tasks[0] ?? "") }),
    },
    shown(kind),
    shown(error),
    timeOf(lastMs),
    tasks.length === 1
      ? linkToTask(tasks[0] ?? "", titles[tasks[0] ?? ""])
      : shown(tasks.slice(0, TASKS_NAMED_MAX).join(" ")),
    { acts: retryThese(tasks) },
  ]);
  const columns = ["times", "kind", "error", "last", "tasks", "again"];
  return table(`Failed, by cause${some}`, columns, rows, "nothing has failed");
}
