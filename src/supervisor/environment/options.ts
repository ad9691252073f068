/** Types only: the options of a supervisor, and the summary of its run. */
import type { HeldTask } from "../../core/documents.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { WorkerBoot, WorkerProcess } from "../../worker/protocol.ts";
import type { EndReason } from "./lifecycle.ts";
import type { PartReport } from "./part.ts";

export interface SupervisorOptions extends RunMode {
  tree: StateTree;
  settings: Settings;
  /** Makes the only worker, in this process; left out: workers are processes of their own. */
  startWorker?: (orders: WorkerBoot) => WorkerProcess;
  /** Called when the supervisor owns the tree and begins. */
  onStart?: (start: RunStart) => void;
  /** Called with lines for people, as things happen. */
  onNotice?: (notice: string) => void;
}

/** How the supervisor runs, and when it ends. Without any of these it runs until it is stopped. */
export interface RunMode {
  /** Make one pass over the waiting tasks, then end. */
  once?: boolean;
  /** End when no task is left that could run. */
  drain?: boolean;
  /** With `once`: report what would be done, and do nothing. */
  dryRun?: boolean;
  /** End after this many tasks were started. */
  maxTasks?: number;
  paused?: boolean;
  /** `settings.workers` was given for this run. If it differs from the number that `set-workers` replaced, it is the newer wish. */
  areWorkersGiven?: boolean;
}

export interface RunStart {
  /** The number of slots over all worker processes. */
  slots: number;
  /** The number comes from a `set-workers` before this run. */
  areSlotsRemembered: boolean;
}

/** How many tasks have settled since the start, and how. */
export interface EndCounts {
  completed: number;
  failed: number;
  /** How many did not run, because a task that they depend on had failed. */
  skipped: number;
  /** How many did not run, because another task had their key. */
  duplicates: number;
}

/** The counts, with more details. */
export interface RunCounts extends EndCounts {
  /** How many of the failed tasks are nodes of the plan. The plan may have continued without them, as `roadmap` reports. */
  failedNodes: number;
  /** Completed batches with failed lines, and the number of those lines. */
  batchesWithFailedLines: number;
  failedLines: number;
}

/** The progress of a run, in numbers of tasks. */
export interface RunProgress extends Pick<RunCounts, "completed" | "failed" | "skipped"> {
  /** How many tasks wait or run, with nodes of the plan that have no task yet. Some may be unable to start. */
  left: number;
  /** How many are in `processing/`. */
  accepted: number;
  /** False while the inbox is still being read. */
  isAllKnown: boolean;
}

/** The summary that `run --json` prints. */
export interface RunSummary extends RunCounts, PartReport {
  /** Files that hold no task, or whose id was used already. */
  refused: number;
  /** Waiting tasks that cannot run: dependencies unmet, no agent fits, or unreadable. */
  blocked: number;
  /** Some of the blocked tasks. */
  held: HeldTask[];
  /** With `dryRun`: the tasks that would run, best first. */
  wouldRun: string[];
  endedBy: EndReason;
}
