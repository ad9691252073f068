/** Overviews and frames for tests of the screen. */
import { ASCII_SIGNS, UNICODE_SIGNS } from "../../../src/parts/top/cells.ts";
import type { Frame } from "../../../src/parts/top/frame.ts";
import { rowsOf } from "../../../src/parts/top/rows.ts";
import { START, type TopState } from "../../../src/parts/top/state.ts";
import type { Overview, RunningRow } from "../../../src/view/overview.ts";
import type { TimelineRun } from "../../../src/view/timeline/timeline.ts";

export const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

export function runningRow(id: string, more: Partial<RunningRow> = {}): RunningRow {
  return {
    id,
    title: `title of ${id}`,
    attempt: 1,
    attempts_max: null,
    agent: null,
    age_ms: 65_000,
    is_alive: true,
    progress: null,
    last_line: null,
    cost_usd_micro: null,
    run: `2026-03-01/${id}@x.1`,
    machine: null,
    ...more,
  };
}

const count = (n: number) => ({ count: n, is_exact: true });

export function ended(id: string, more: Partial<TimelineRun> = {}): TimelineRun {
  return {
    id,
    title: `title of ${id}`,
    lane: "exec",
    attempt: 1,
    from_ms: NOW_MS - 100_000,
    to_ms: NOW_MS - 60_000,
    end: "done",
    why: "",
    ...more,
  };
}

/** A pool in which something of each kind happens. */
export function overview(more: Partial<Overview> = {}): Overview {
  return {
    at_ms: NOW_MS,
    state_dir: "/srv/pool/state",
    health: { state: "live", text: "live", is_attended: true },
    slots: { busy: 2, total: 3, processes: 1 },
    workers: [],
    paused: null,
    counts: {
      waiting: count(410),
      ready: 2,
      delayed: 0,
      held: 0,
      running: 2,
      elsewhere: 0,
      settling: 0,
      done: { count: 100_000, is_exact: false },
      failed: count(5),
      skipped: count(0),
      commands_waiting: 0,
    },
    minutes: {
      last_minute_ms: NOW_MS,
      completed: [...Array.from({ length: 58 }, () => null), 42, 3],
      failed: [...Array.from({ length: 58 }, () => null), 1, 0],
    },
    run_time: { p50_ms: 12_000, p95_ms: 240_000 },
    cost: { today_usd_micro: 18_400_000, is_complete: true },
    running: [
      runningRow("fix-login", {
        agent: "coder",
        attempt: 2,
        cost_usd_micro: 1_220_000,
        progress: { pct: 40, text: "tests 118/240" },
      }),
      runningRow("crawl-eu", { last_line: "page 9,702 of 10,000" }),
    ],
    waiting: [
      {
        code: "blocked",
        text: "wait for other tasks",
        count: count(372),
        tasks: [
          {
            id: "deploy-eu",
            title: "Deploy to Europe",
            why: "waits for migrate-db, which failed",
            due_ms: null,
          },
        ],
        do: null,
      },
      {
        code: "start",
        text: "wait for a free slot: 2 of 3 are busy",
        count: count(40),
        tasks: [],
        do: null,
      },
    ],
    groups: [
      {
        kind: "group",
        name: "gpu",
        waiting: 2,
        in_work: 1,
        slots: 4,
        rate: null,
        limits: ["cuda"],
        spent_usd_micro: 1_500_000,
        why: null,
        do: null,
        tasks: [],
      },
      {
        kind: "group",
        name: "nightly",
        waiting: 12,
        in_work: 0,
        slots: null,
        rate: null,
        limits: [],
        spent_usd_micro: null,
        why: "group nightly is paused: mailchute group resume nightly",
        do: "mailchute group resume nightly",
        tasks: [{ id: "report-7", title: "Weekly report", why: "", due_ms: null }],
      },
      {
        kind: "limit",
        name: "cuda",
        waiting: null,
        in_work: null,
        slots: 1,
        rate: "6/min",
        limits: [],
        spent_usd_micro: null,
        why: null,
        do: null,
        tasks: [],
      },
    ],
    failures: {
      causes: [
        {
          kind: "exit",
          error: "connect ECONNREFUSED 127.0.0.1:5432",
          count: 4,
          tasks: ["sync-a", "sync-b", "sync-c", "sync-d"],
          first_ms: NOW_MS - 600_000,
          last_ms: NOW_MS - 120_000,
        },
        {
          kind: "timeout",
          error: "it ran longer than its limit",
          count: 1,
          tasks: ["crawl-us"],
          first_ms: NOW_MS - 60_000,
          last_ms: NOW_MS - 60_000,
        },
      ],
      titles: { "sync-d": "Sync accounts to the CRM", "crawl-us": "Crawl the shops of America" },
      grouped: 5,
      is_all: true,
    },
    questions: [
      {
        id: "plan-7",
        question: "Drop column users.legacy?",
        who: "node plan-7",
        expects: "text",
        asked_at_ms: NOW_MS - 1_320_000,
      },
    ],
    obstacles: [{ what: "the number of slots is set to 0", do: "mailchute set-workers N" }],
    alerts: [{ kind: "trouble", message: "the disk is slow", at_ms: NOW_MS - 5000 }],
    ...more,
  };
}

export function frame({
  of = overview(),
  state = {},
  ...more
}: Partial<Omit<Frame, "state">> & {
  of?: Overview;
  state?: Partial<TopState>;
} = {}): Frame {
  const whole = { ...START, ...state };
  return {
    overview: of,
    trouble: undefined,
    past: undefined,
    panes: rowsOf(of, whole.filter, more.past?.ended),
    state: whole,
    task: undefined,
    step: "",
    look: { colour: false, signs: UNICODE_SIGNS },
    isReadOnly: false,
    nowMs: NOW_MS,
    ...more,
  };
}

export { ASCII_SIGNS };
