/** The summary of a run, and of a dry run. */
import type { HeldTask } from "../core/documents.ts";
import { laneOf } from "../core/waiting-task.ts";
import type { Environment } from "./environment/environment.ts";
import type { EndReason } from "./environment/lifecycle.ts";
import type { RunProgress, RunSummary } from "./environment/options.ts";
import type { Parts } from "./environment/parts.ts";
import type { Rejections } from "./inbox/reject.ts";
import type { Completions } from "./queue/completions.ts";
import type { Queue } from "./queue/queue.ts";
import { findBlockedTasks } from "./status/blocked-tasks.ts";
import { reportOf, type StatusWriter } from "./status/status-writer.ts";

export interface RunReportParts {
  queue: Queue;
  parts: Parts;
  completions: Completions;
  rejections: Rejections;
  status: StatusWriter;
}

/** How many tasks of groups and agents with 0 slots are named. */
const NAMED_MAX = 5;
/** A dry run looks at the inbox for this long at a time (ms). */
const LOOK_MS = 100;

export class RunReport {
  private readonly deps: RunReportParts;

  constructor(
    private readonly env: Pick<Environment, "settings" | "trays">,
    parts: RunReportParts,
  ) {
    this.deps = parts;
  }

  /** The progress of the run. A caller may ask for it several times a second. */
  progress(): RunProgress {
    const { completions, queue, status } = this.deps;
    const { accepted, backlog, scanner } = queue;
    const { completed, failed, skipped } = completions.counts;
    let left = backlog.size + (status.last?.roadmap?.open ?? 0);
    // A task between two runs is in both.
    for (const id of accepted.ids()) if (backlog.stateOfId(id) === undefined) left++;
    return {
      completed,
      failed,
      skipped,
      left,
      accepted: accepted.size,
      isAllKnown: scanner.isComplete,
    };
  }

  summary(endedBy: EndReason): RunSummary {
    const { completions, parts, queue, rejections } = this.deps;
    const { backlog, scanner } = queue;
    const closed = this.takeClosed();
    return {
      ...completions.counts,
      refused: rejections.count,
      blocked:
        backlog.count("blocked") +
        backlog.count("unmatched") +
        scanner.unreadableCount +
        closed.count,
      held: [...closed.named, ...findBlockedTasks(this.env.trays, this.deps)],
      wouldRun: [],
      endedBy,
      ...reportOf(parts),
    };
  }

  /**
   * The tasks of groups and agents with 0 slots, and those that wait for an answer. Takes them out of the backlog, which is not used
   * after the summary.
   */
  private takeClosed(): { count: number; named: HeldTask[] } {
    const { parts, queue } = this.deps;
    const { backlog } = queue;
    const isClosed = (lane: string): boolean => parts.whyClosed(lane) !== undefined;
    const closed = [...backlog.held()].filter((task) => isClosed(laneOf(task)));
    for (;;) {
      const task = backlog.takeBest("all", isClosed);
      if (task === undefined) break;
      closed.push(task);
    }
    const named = closed.slice(0, NAMED_MAX).map((task): HeldTask => {
      return { id: task.id, state: "closed", why: parts.whyClosed(laneOf(task)) ?? "" };
    });
    return { count: closed.length, named };
  }

  /** Looks at all waiting tasks, and changes nothing. */
  async dryRun(): Promise<RunSummary> {
    const { settings, trays } = this.env;
    const { clock } = trays;
    const { parts, queue } = this.deps;
    const { backlog, scanner } = queue;
    scanner.hint(undefined);
    while (settings.mailbox_enabled && scanner.hasWork) scanner.work(clock.monotonicMs() + LOOK_MS);
    backlog.promoteDue(clock.wallMs(), clock.monotonicMs());
    await parts.start(true);
    const wouldRun = parts.statuses.flatMap((status) => status.wouldRun?.() ?? []);
    const summary = this.summary("once");
    for (let task = backlog.takeBest(); task !== undefined; task = backlog.takeBest())
      wouldRun.push(task.id);
    return { ...summary, wouldRun };
  }
}
