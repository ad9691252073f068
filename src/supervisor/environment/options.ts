/** What a supervisor is asked for, and what its run came to. Shapes only. */
import type { HeldTask } from "../../core/documents.ts";
import type { Settings } from "../../core/settings.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { EndReason } from "./lifecycle.ts";
import type { PartReport } from "./part.ts";

export interface SupervisorOptions extends RunMode {
  tree: StateTree;
  settings: Settings;
  /** It owns the tree and begins. */
  onStart?: (start: RunStart) => void;
  /** Lines for people: what is worth knowing as it happens. */
  onNotice?: (notice: string) => void;
}

/** How long it runs, and what for. All left out: until it is stopped. */
export interface RunMode {
  /** One pass over what waits, then end. */
  once?: boolean;
  /** End when nothing is left that could run. */
  drain?: boolean;
  /** With `once`: say what would be done, and do nothing. */
  dryRun?: boolean;
  /** End after so many tasks were started. */
  maxTasks?: number;
  paused?: boolean;
  /** `settings.workers` was given for this very run. When it is another than `set-workers` overrode, it is the newer wish. */
  areWorkersGiven?: boolean;
}

export interface RunStart {
  /** In force, over all worker processes. */
  slots: number;
  /** `set-workers` has said so before this run. */
  areSlotsRemembered: boolean;
}

/** Tasks settled since the start. */
export interface RunCounts {
  completed: number;
  failed: number;
  /** Of these, nodes of the plan: it may have gone on without them, as `roadmap` tells. */
  failedNodes: number;
  /** Completed batches some of whose lines failed, and how many lines that are. */
  batchesWithFailedLines: number;
  failedLines: number;
}

/** As `run --json` prints it. */
export interface RunSummary extends RunCounts, PartReport {
  /** Files that are no tasks, or whose id was taken. */
  refused: number;
  /** Waiting tasks that cannot run: dependencies unmet, no agent fits, not to be read. */
  blocked: number;
  /** Some of these. */
  held: HeldTask[];
  /** With `dryRun`: what would run, best first. */
  wouldRun: string[];
  endedBy: EndReason;
}
