/** Types of a snapshot of a state tree, as `--json` shows them: its supervisor, its tasks, and the reasons why nothing moves. */
import type { BatchProgress } from "../core/batch.ts";
import type { SupervisorDocument } from "../core/documents.ts";
import type { SupervisorState } from "../core/gates.ts";
import type { ControlDocument } from "../core/saved-documents.ts";
import type { Verdict } from "../host/identity.ts";
import type { Count } from "./scan.ts";
import type { TaskProgress } from "./task-progress.ts";

export interface SupervisorView {
  state: SupervisorState;
  document: SupervisorDocument | null;
  heartbeat_age_ms: number | null;
}

export interface WorkerView {
  id: string;
  pid: number;
  slots: number;
  verdict: Verdict;
  heartbeat_age_ms: number;
  supervisor_pid: number | null;
}

export interface RunningView {
  id: string;
  /** 0 for the plain claim of a foreign worker. */
  attempt: number;
  run: string | null;
  lease: string | null;
  pid: number | null;
  verdict: Verdict;
  /** Time since the attempt began; null when its start left no trace. */
  age_ms: number | null;
  /** Progress of a batch; left out for a task. */
  batch?: BatchProgress;
  /** The progress that the task itself reports. */
  progress?: TaskProgress;
  /** The other machine that runs it, and the last line of the run there; left out for a run at this one. */
  machine?: string;
  last_line?: string;
}

export interface FailureView {
  id: string;
  code: string;
  kind: string;
  error: string;
  attempts: number;
  /** Epoch ms. */
  failed_at_ms: number;
}

export interface QuestionView {
  id: string;
  question: string;
  /** A text for people that says who waits for the answer. */
  who: string;
  /** `limit`: yes, no or a number. */
  expects: "text" | "limit";
  asked_at_ms: number;
}

/** A reason why the tree does not move, or not fully. */
export interface Obstacle {
  what: string;
  do: string;
}

export interface Snapshot {
  state_dir: string;
  mailbox_dir: string;
  /** ISO 8601. */
  at: string;
  supervisor: SupervisorView;
  workers: WorkerView[];
  control: ControlDocument;
  counts: {
    waiting: Count;
    ready: number;
    delayed: number;
    /** Tasks that wait for a gate, such as the quota of an account. */
    held: number;
    running: number;
    /** Tasks that run at other machines. */
    elsewhere: number;
    settling: number;
    done: Count;
    /** Failed tasks, without the skipped ones. */
    failed: Count;
    /** Did not run, because a task that they depend on has failed. */
    skipped: Count;
    commands_waiting: number;
  };
  /** Ids of accepted tasks that wait because their files cannot be read. */
  unreadable: string[];
  /** Files in the inbox that are meant as tasks and wait because of their endings, such as `a.yaml`; at most 1000. */
  misnamed: string[];
  running: RunningView[];
  recent_failures: FailureView[];
  metrics: Record<string, unknown> | null;
  /** A task that was dropped again unchanged in the last day: it had ended already, and nothing ran. */
  dropped_again: { id: string; state: "done" | "failed"; at_ms: number } | null;
  /** Questions that wait for a person, without those of the plan; the oldest first. */
  questions: QuestionView[];
  /** `config.yaml` was saved after the supervisor had started; left out otherwise. */
  config_newer?: true;
  obstacles: Obstacle[];
}
