/**
 * The numbers of a pool under the names that Prometheus gets. Their number is bounded: no id of a task, no name of an agent and no
 * text of an error is a label. Pure.
 */
import { LIFECYCLE_EVENTS } from "../../core/events.ts";
import type { Count } from "../scan.ts";
import type { Snapshot } from "../snapshot.ts";
import { askingCount, closedGates, intakeStopped, isAttended } from "../supervisor.ts";
import { slotsOf } from "../waiting-groups.ts";
import type { EventCounts } from "./event-counts.ts";
import type { Family, Labels, Sample } from "./exposition.ts";

/** How full each window of an account's quota is, as the service last told a run. */
export interface Quota {
  account: string;
  isOpen: boolean;
  windows: { window: string; usedPct: number; resetsAtMs: number }[];
}

export interface PoolFacts {
  /** The version of the program that writes these numbers. */
  version: string;
  snapshot: Snapshot;
  counts: EventCounts;
  badLines: number;
  journals: {
    /** By journal, with its rotated files. */
    bytes: Readonly<Record<string, number>>;
    /** How many bytes of the journal of events `metrics.json` does not count yet, and how many `counts` does not. */
    lagBytes: number;
    leftBytes: number;
  };
  /** Undefined when the system does not report it. */
  disk: { freeBytes: number; sizeBytes: number } | undefined;
  quotas: readonly Quota[];
  /** The use by coding agents; undefined while it is not known. */
  today: { costUsd: number; tokens: Readonly<Record<string, number>> } | undefined;
}

const GATES_MAX = 20;
const QUOTA_WINDOWS_MAX = 50;

export function familiesOf(facts: PoolFacts): Family[] {
  return [
    gauge("info", "The version of mailchute that wrote these numbers.", [
      { labels: { version: facts.version }, value: 1 },
    ]),
    ...supervisorFamilies(facts.snapshot),
    ...taskFamilies(facts.snapshot),
    ...countFamilies(facts.counts),
    ...poolFamilies(facts.snapshot),
    ...machineFamilies(facts),
    ...agentFamilies(facts),
  ];
}

function supervisorFamilies({ supervisor, at, control }: Snapshot): Family[] {
  const { document, heartbeat_age_ms: ageMs } = supervisor;
  const startedMs = Date.parse(document?.started_at ?? "");
  return [
    gauge("up", "1 when a supervisor looks after the state tree, else 0.", [
      one(isAttended(supervisor)),
    ]),
    gauge(
      "supervisor_start_time_seconds",
      "When the supervisor started, in unix time.",
      Number.isFinite(startedMs) ? [{ value: startedMs / 1000 }] : [],
    ),
    gauge(
      "supervisor_heartbeat_timestamp_seconds",
      "When the supervisor wrote its last heartbeat, in unix time. It writes one each 2 s.",
      ageMs === null ? [] : [{ value: seconds(Date.parse(at) - ageMs) }],
    ),
    gauge("paused", "1 when a command has paused the pool, else 0.", [one(control.paused)]),
    gauge("intake_stopped", "1 while no task starts because a disk is nearly full, else 0.", [
      { labels: { reason: "disk" }, ...one(intakeStopped(supervisor) !== undefined) },
    ]),
  ];
}

function taskFamilies({ counts, supervisor }: Snapshot): Family[] {
  const { waiting, done, failed, skipped, ...rest } = counts;
  const { ready, delayed, held, running, elsewhere, settling, commands_waiting: commands } = rest;
  const counted: Record<string, Count> = { waiting, done, failed, skipped };
  const exact = { ready, delayed, held, running, elsewhere, settling };
  const told = isAttended(supervisor) ? supervisor.document?.waiting : undefined;
  const reasons = [
    "runnable",
    "delayed",
    "blocked",
    "unmatched",
    "unsettled",
    "unreadable",
  ] as const;
  return [
    gauge(
      "tasks",
      "Files of tasks by state: waiting is the inbox; ready, delayed, held, running, elsewhere (at another machine) and settling are in processing; done, failed and skipped are records, as long as they are kept.",
      [
        ...by("state", exact),
        ...Object.entries(counted).map(([state, { count }]) => ({
          labels: { state },
          value: count,
        })),
      ],
    ),
    gauge(
      "tasks_exact",
      "1 when the number of tasks in this state is exact; 0 while a large tray is being counted again, or when it has too many files to count.",
      Object.entries(counted).map(([state, { is_exact: isExact }]) => ({
        labels: { state },
        ...one(isExact),
      })),
    ),
    gauge(
      "inbox_tasks",
      "Tasks in the inbox by what they wait for, as the supervisor last said.",
      told?.is_complete === true
        ? reasons.map((reason) => ({ labels: { reason }, value: told[reason] ?? 0 }))
        : [],
    ),
    gauge("commands_waiting", "Commands that the supervisor has not taken up.", [
      { value: commands },
    ]),
  ];
}

function countFamilies(counts: EventCounts): Family[] {
  const { completed, failed, skipped, events } = counts;
  return [
    counter("tasks_settled_total", "Tasks that have ended, by result.", [
      ...by("result", { completed, failed, skipped }),
    ]),
    counter("task_failures_total", "Tasks that have failed, by kind of failure.", [
      ...by("kind", counts.failures),
    ]),
    counter(
      "task_retries_total",
      "Failed runs that were followed by another, by kind of failure.",
      by("kind", counts.retries),
    ),
    counter("batches_with_failed_lines_total", "Completed batches of which a line has failed.", [
      { value: counts.withFailedLines },
    ]),
    counter(
      "events_total",
      "Lines of the journal by event.",
      LIFECYCLE_EVENTS.map((event) => ({ labels: { event }, value: events[event] ?? 0 })),
    ),
    {
      name: "mailchute_task_run_seconds",
      help: "How long the last runs of ended tasks took.",
      type: "histogram",
      of: counts.runs,
    },
    {
      name: "mailchute_task_wait_seconds",
      help: "How long tasks were in the inbox until they were chosen to run.",
      type: "histogram",
      of: counts.waits,
    },
  ];
}

function poolFamilies(snapshot: Snapshot): Family[] {
  const { running, questions, supervisor, obstacles, at } = snapshot;
  const slots = slotsOf(snapshot);
  const asking = askingCount(supervisor);
  const askedMs = questions.map((question) => question.asked_at_ms).filter((ms) => ms > 0);
  const gates = closedGates(supervisor).filter(({ is_well: isWell }) => isWell !== true);
  const names = [...new Set(gates.map(({ gate }) => gate))].slice(0, GATES_MAX);
  const longestMs = Math.max(0, ...running.map(({ age_ms: ageMs }) => ageMs ?? 0));
  return [
    gauge("slots", "How many tasks the workers can run at once.", [{ value: slots.total }]),
    gauge("slots_busy", "How many of them are busy.", [{ value: slots.busy }]),
    gauge("worker_processes", "Worker processes that live.", [{ value: slots.processes }]),
    gauge(
      "runs_without_worker",
      "Claimed tasks whose worker is dead: they are about to be taken back.",
      [{ value: running.filter(({ verdict }) => verdict === "dead").length }],
    ),
    gauge(
      "longest_run_seconds",
      "For how long the longest run has been going on; 0 when none is.",
      [{ value: longestMs / 1000 }],
    ),
    gauge("questions_open", "Questions that wait for a person.", [
      { value: questions.length + asking },
    ]),
    gauge(
      "oldest_question_timestamp_seconds",
      "When the oldest open question was asked, in unix time; left out without one.",
      askedMs.length === 0 ? [] : [{ value: seconds(Math.min(Date.parse(at), ...askedMs)) }],
    ),
    gauge("obstacles", "Reasons why the pool does not move, or not fully.", [
      { value: obstacles.length },
    ]),
    gauge("gates_closed", "Gates that keep tasks from starting, such as a used-up quota.", [
      { value: gates.length },
    ]),
    gauge(
      "gate_closed",
      `1 for each of these gates by name, at most ${GATES_MAX}.`,
      names.map((gate) => ({ labels: { gate }, value: 1 })),
    ),
  ];
}

function machineFamilies({ disk, journals, badLines }: PoolFacts): Family[] {
  const of = (name: string, help: string, value: number | undefined): Family =>
    gauge(name, help, value === undefined ? [] : [{ value }]);
  return [
    of("disk_free_bytes", "Free space for us on the disk of the state tree.", disk?.freeBytes),
    of("disk_size_bytes", "The size of that disk.", disk?.sizeBytes),
    gauge("journal_bytes", "The size of each journal, with its rotated files.", [
      ...by("journal", journals.bytes),
    ]),
    of(
      "journal_lag_bytes",
      "How much of the journal of events metrics.json does not count yet. These numbers do.",
      journals.lagBytes,
    ),
    of(
      "journal_uncounted_bytes",
      "How much of the journal of events these numbers do not count: it was too much to read at once.",
      journals.leftBytes,
    ),
    counter("journal_bad_lines_total", "Lines of the journal of events that are no records.", [
      { value: badLines },
    ]),
  ];
}

function agentFamilies({ quotas, today }: PoolFacts): Family[] {
  const windows = quotas
    .flatMap(({ account, windows: all }) =>
      all.map((one) => ({ ...one, labels: { account, window: one.window } as Labels })),
    )
    .slice(0, QUOTA_WINDOWS_MAX);
  return [
    gauge(
      "quota_open",
      "1 when runs of this account may start, 0 while its quota is used up.",
      quotas.map(({ account, isOpen }) => ({ labels: { account }, ...one(isOpen) })),
    ),
    gauge(
      "quota_used_ratio",
      "How full a window of an account's quota is, from 0 to 1, as a run was last told.",
      windows.map(({ labels, usedPct }) => ({ labels, value: usedPct / 100 })),
    ),
    gauge(
      "quota_reset_timestamp_seconds",
      "When that window begins anew, in unix time.",
      windows.map(({ labels, resetsAtMs }) => ({ labels, value: seconds(resetsAtMs) })),
    ),
    gauge(
      "cost_today_usd",
      "What coding agents have used since midnight UTC, with runs that go on.",
      today === undefined ? [] : [{ value: today.costUsd }],
    ),
    gauge(
      "tokens_today",
      "Tokens of their booked runs since midnight UTC; input holds cached_input.",
      today === undefined ? [] : by("kind", today.tokens),
    ),
  ];
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name: `mailchute_${name}`, help, type: "gauge", samples };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name: `mailchute_${name}`, help, type: "counter", samples };
}

function by(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

function one(is: boolean): Sample {
  return { value: is ? 1 : 0 };
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}
