/** Handles settled tasks: counts them, releases their dependents, and reports failures. Checks again which dependencies are met. */
import { type BatchCounts, failedLinesText } from "../../core/batch.ts";
import type { Dependency } from "../../core/dependencies.ts";
import { errorName, resultName, resultsName } from "../../core/names.ts";
import { headlineOf } from "../../core/outcome.ts";
import { pathIn } from "../../mailbox/files/trays.ts";
import { hasErrorRecord, isFailed } from "../../mailbox/find/failures.ts";
import { readSettled, type SettledRecord } from "../../mailbox/find/settled-record.ts";
import type { Environment } from "../environment/environment.ts";
import type { RunCounts } from "../environment/options.ts";
import type { Parts } from "../environment/parts.ts";
import { NEVER, type Service } from "../environment/service.ts";
import type { Queue } from "./queue.ts";

type CompletionsEnvironment = Pick<Environment, "trays" | "alerts" | "facts">;
type CompletionsQueue = Pick<Queue, "accepted" | "backlog" | "finishedIds" | "pool">;

/** Listing the settled tasks takes at most about this much of a tick (ms). */
const SLICE_MS = 2;
/** How many dependencies are checked again at a time. */
const RECHECKS_MAX = 128;
/** How many characters of an error the terminal shows. */
const ERROR_CHARS_MAX = 200;

/** The part of a lease that all leases of one process share. */
function ownerPrefixOf(lease: string): string {
  const owner = lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
  return owner.slice(0, owner.lastIndexOf("-"));
}

export class Completions implements Service {
  readonly counts: RunCounts = {
    completed: 0,
    failed: 0,
    skipped: 0,
    duplicates: 0,
    failedNodes: 0,
    batchesWithFailedLines: 0,
    failedLines: 0,
  };

  private rechecking: Iterator<string, undefined>;

  constructor(
    private readonly env: CompletionsEnvironment,
    private readonly queue: CompletionsQueue,
    private readonly parts: Parts,
  ) {
    this.rechecking = queue.backlog.dependencies();
    const { facts } = env;
    facts.on("task:settled", (id, isCompleted, batch) => this.noteSettled(id, isCompleted, batch));
    facts.on("task:vanished", (id) => this.noteVanished(id));
    facts.on("journal:completed", (id) => this.noteCompleted(id));
    facts.on("task:skipped", (id, isDuplicate) => this.noteSkipped(id, isDuplicate));
  }

  /** Lists a piece of `outbox/` and `failed/`. After the last piece it is known which ids have completed, in every spelling. */
  work(): void {
    const { finishedIds } = this.queue;
    if (!finishedIds.hasWork) return;
    finishedIds.work(this.env.trays.clock.monotonicMs() + SLICE_MS);
    if (!finishedIds.hasWork) this.recheckDependencies();
  }

  nextMs(nowMs: number): number {
    return this.queue.finishedIds.hasWork ? nowMs : NEVER;
  }

  stop(): void {
    this.queue.finishedIds.close();
  }

  /** @param batch the counts of its lines, when it is a batch */
  private noteSettled(id: string, isCompleted: boolean, batch?: BatchCounts): void {
    const { accepted, finishedIds, pool } = this.queue;
    accepted.delete(id);
    finishedIds.add(id);
    pool.workers.noteSettled();
    if (isCompleted) {
      this.counts.completed++;
      this.noteCompleted(id);
      if (batch !== undefined) this.tellFailedLines(id, batch);
    } else {
      this.counts.failed++;
      if (this.parts.ownerOf(id) !== undefined) this.counts.failedNodes++;
      else this.tellFailure(id);
      this.env.facts.emit("task:failed", id);
    }
  }

  private noteSkipped(id: string, isDuplicate: boolean): void {
    this.queue.accepted.delete(id);
    // The dependents of this task are judged next, and each asks for this id.
    this.queue.finishedIds.add(id, pathIn(this.env.trays.failed, errorName(id)));
    if (isDuplicate) this.counts.duplicates++;
    else this.counts.skipped++;
    this.env.facts.emit("task:failed", id);
  }

  /**
   * Handles a task that is gone from `processing/` without a report from a worker: a worker that is not our child has settled it,
   * or another program has removed it. Our own children always report, though perhaps late.
   */
  private noteVanished(id: string): void {
    let record: SettledRecord["record"] | undefined;
    try {
      record = readSettled(this.env.trays, id)?.record;
    } catch {
      // The record cannot be read now: the task stays uncounted.
    }
    if (record?.status === "failed") this.env.facts.emit("task:failed", id);
    // A record without a run is that of a refused file.
    if (record === undefined || record.attempts === 0) return;
    if (!this.queue.pool.workers.isOrWasOwn(ownerPrefixOf(record.lease)))
      this.env.facts.emit("task:settled", id, record.status === "completed", record.batch);
  }

  /** Reports failed lines. A batch has completed when each of its lines has a result, good or bad. */
  private tellFailedLines(id: string, batch: BatchCounts): void {
    const text = failedLinesText(batch);
    if (text === undefined) return;
    this.counts.batchesWithFailedLines++;
    this.counts.failedLines += batch.failures;
    this.env.alerts.alert(
      "lines_failed",
      `${id} completed, but ${text}; outbox/${resultsName(id)} says why, \`mailchute retry ${id}\` runs those again`,
    );
  }

  /** Reports a failed task. Its record is opened only for the few that are reported. */
  private tellFailure(id: string): void {
    const see = `see \`mailchute show ${id}\``;
    this.env.alerts.alert("task_failed", `${id} failed for good; ${see}`, () => {
      const error = this.errorOf(id);
      return `${id} failed for good${error === "" ? "" : `: ${error}`}; ${see}`;
    });
  }

  /** The error in one line; empty when the record cannot be read. */
  private errorOf(id: string): string {
    try {
      const record = readSettled(this.env.trays, id)?.record;
      const error = record?.status === "failed" ? headlineOf(record.error) : "";
      return error.length > ERROR_CHARS_MAX ? `${error.slice(0, ERROR_CHARS_MAX)}…` : error;
    } catch {
      return "";
    }
  }

  /** Handles a completed task. A part may know that its own task, such as a question, completed without the wanted result. */
  private noteCompleted(id: string): void {
    const { backlog } = this.queue;
    // Most tasks have no dependents, and a part may have to look at a file.
    if (!backlog.isAwaited(id)) return;
    if (this.parts.isDone(id) !== false) backlog.resolveDependency(id);
    else backlog.resolveEnd(id);
  }

  /**
   * Whether the dependency has completed, or ended if that is enough, ignoring case. False also while a listing still looks for
   * another spelling.
   */
  isMet({ id, required }: Dependency): boolean {
    if (required === "terminal") return this.hasEnded(id);
    return this.parts.isDone(id) ?? this.hasResult(id);
  }

  /** Whether the task has completed, or failed for good. */
  hasEnded(id: string): boolean {
    return (
      this.parts.hasEnded(id) ??
      (this.hasResult(id) || isFailed(this.env.trays, this.failedAs(id) ?? id))
    );
  }

  /** The id as it is spelled in the name of its error record; undefined when it has none. */
  failedAs(id: string): string | undefined {
    return hasErrorRecord(this.env.trays, id) ? id : this.queue.finishedIds.failedAs(id);
  }

  private hasResult(id: string): boolean {
    const { trays } = this.env;
    const isThere = trays.storage.look(pathIn(trays.outbox, resultName(id))) !== undefined;
    return isThere || this.queue.finishedIds.hasResult(id);
  }

  private recheck(id: string): void {
    const { backlog } = this.queue;
    const hasResult = this.hasResult(id);
    if (this.parts.isDone(id) ?? hasResult) backlog.resolveDependency(id);
    else if (this.parts.hasEnded(id) ?? hasResult) backlog.resolveEnd(id);
    else this.env.facts.emit("task:failed", id);
  }

  /** Checks whether awaited results are there, in case an event was lost. Each call checks a few of them, in turn. */
  recheckDependencies(): void {
    const { backlog } = this.queue;
    for (let count = 0; count < RECHECKS_MAX; count++) {
      const { value: id, done } = this.rechecking.next();
      if (done === true) {
        this.rechecking = backlog.dependencies();
        return;
      }
      this.recheck(id);
    }
  }
}
