/**
 * The overview of a pool, as rows, for a person who looks after the pool. The screen and the web pages show it. Types only. Texts
 * come from tasks and files: they are not safe for a terminal here.
 */
import type { LimitKind, LimitSource } from "../core/task-limits.ts";
import type { Lane } from "../core/waiting-task.ts";
import type { MinuteCounts } from "./done-rate.ts";
import type { FailureCauses } from "./failure-causes.ts";
import type { AlertView } from "./latest-alerts.ts";
import type { Count } from "./scan.ts";
import type { Obstacle, QuestionView, Snapshot } from "./snapshot.ts";
import type { CostView } from "./spent-today.ts";
import type { TaskProgress } from "./task-progress.ts";

export interface Health {
  state: "live" | "silent" | "stopped" | "none" | "dead" | "unknown";
  /** For people: "dead: pid 7 is gone, last seen 3 min ago". */
  text: string;
  /** A supervisor takes up commands, as far as can be seen from here. */
  is_attended: boolean;
}

export interface RunningRow {
  id: string;
  title: string;
  /** 0 for the plain claim of a foreign worker. */
  attempt: number;
  attempts_max: number | null;
  agent: string | null;
  age_ms: number | null;
  /** False when the process that holds it is dead. */
  is_alive: boolean;
  progress: TaskProgress | null;
  /** The last line of the run; for a batch, its progress. */
  last_line: string | null;
  /** The cost so far; null when it is not known, or the task uses nothing that has a price. */
  cost_usd_micro: number | null;
  /** The path of its folder below `runs/`; null when it has none yet, or runs at another machine. */
  run: string | null;
  /** The other machine that runs it; null for a run at this one. */
  machine: string | null;
}

export interface WaitingTask {
  id: string;
  /** Missing when its file was not read. */
  title?: string;
  /** Why it waits, as a text that follows the id; "" when the text of the group says it. */
  why: string;
  /** When the task may start (epoch ms); null when that does not depend on a time. */
  due_ms: number | null;
}

/** Tasks that wait for the same thing. */
export interface WaitingGroup {
  /** A key for what the tasks wait for. */
  code: string;
  text: string;
  /** The number of these tasks; null when it is not known. */
  count: Count | null;
  /** Some of these tasks. */
  tasks: WaitingTask[];
  /** What a person can do; null when the tasks continue by themselves. */
  do: string | null;
}

/** A group or a limit of `config.yaml`, with the changes by commands. */
export interface GroupView {
  kind: LimitKind;
  name: string;
  /** How many of its tasks wait, and how many of its slots are taken; null when no supervisor tells. */
  waiting: number | null;
  in_work: number | null;
  /** Null without a limit. */
  slots: number | null;
  rate: string | null;
  /** The limits that a group shares with others. */
  limits: readonly string[];
  /** Today (UTC), in millionths of a US dollar; null when nothing is booked, and for a limit. */
  spent_usd_micro: number | null;
  /** Why none of its tasks starts, and what a person can do; null when they may start. */
  why: string | null;
  do: string | null;
  /** Some of the tasks that wait there. */
  tasks: readonly WaitingTask[];
}

export interface Overview {
  at_ms: number;
  state_dir: string;
  health: Health;
  slots: { busy: number; total: number; processes: number };
  workers: Snapshot["workers"];
  /** Since when the pool is paused, as a text; null when it is not paused. */
  paused: string | null;
  counts: Snapshot["counts"];
  minutes: MinuteCounts;
  /** The durations of all counted runs (ms); null when none was counted. */
  run_time: { p50_ms: number; p95_ms: number } | null;
  cost: Omit<CostView, "running" | "groups">;
  /** The longest run first; at most 200. */
  running: RunningRow[];
  waiting: WaitingGroup[];
  groups: GroupView[];
  failures: FailureCauses;
  questions: QuestionView[];
  /** The reasons why the pool does not move, or not fully, without the questions. */
  obstacles: Obstacle[];
  /** The alerts of the last day, the latest first. */
  alerts: AlertView[];
}

/** What the file of a task says that matters to its run. */
export interface TaskFacts {
  title: string;
  agent: string | null;
  attempts_max: number | null;
}

/** An accepted task that has no worker. */
export interface AcceptedTask {
  id: string;
  /** Epoch ms. */
  due_ms: number;
  /** The gate where the task waits; null for a task that may start. */
  gate: string | null;
}

/** A task in the inbox. */
export interface InboxTask {
  id: string;
  /** Before this time it does not start (epoch ms); null when it may start at any time. */
  due_ms: number | null;
  has_dependencies: boolean;
  lane: Lane;
}

export interface Facts {
  snapshot: Snapshot;
  limits: LimitSource;
  /** The plan was saved after the last report of the supervisor. */
  isPlanNewer: boolean;
  /** By lease. */
  tasks: ReadonlyMap<string, TaskFacts>;
  /** By the run's folder. */
  lastLines: ReadonlyMap<string, string | null>;
  accepted: readonly AcceptedTask[];
  /** Some tasks of the inbox. */
  inbox: readonly InboxTask[];
  /** Of some tasks that wait, by id. */
  titles: ReadonlyMap<string, string>;
  minutes: MinuteCounts;
  failures: FailureCauses;
  alerts: readonly AlertView[];
  cost: CostView;
}
