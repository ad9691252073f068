/** What follows when a task has settled: it is counted, who waited for it may run, and people hear of it when it failed. */
import { join } from "node:path";
import { type BatchCounts, failedLinesText } from "../../core/batch.ts";
import { resultName, resultsName } from "../../core/names.ts";
import { headlineOf } from "../../core/outcome.ts";
import { readSettled, type SettledRecord } from "../../mailbox/settled-record.ts";
import type { Environment } from "../environment/environment.ts";
import type { RunCounts } from "../environment/options.ts";
import type { Parts } from "../environment/parts.ts";
import { NEVER, type Service } from "../environment/service.ts";
import type { Queue } from "./queue.ts";

type CompletionsEnvironment = Pick<Environment, "trays" | "alerts" | "facts">;
type CompletionsQueue = Pick<Queue, "backlog" | "dispatcher" | "finishedIds" | "pool">;

/** Listing what has settled takes at most about this much of a tick (ms). */
const SLICE_MS = 2;
/** Dependencies looked at again at a time. */
const RECHECKS_MAX = 512;
/** Of an error, for the terminal. */
const ERROR_CHARS_MAX = 200;

/** What all leases of the same process begin with after submission and attempt. */
function ownerPrefixOf(lease: string): string {
  const owner = lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
  return owner.slice(0, owner.lastIndexOf("-"));
}

export class Completions implements Service {
  private readonly env: CompletionsEnvironment;
  private readonly queue: CompletionsQueue;
  private readonly parts: Parts;
  readonly counts: RunCounts = {
    completed: 0,
    failed: 0,
    failedNodes: 0,
    batchesWithFailedLines: 0,
    failedLines: 0,
  };

  private rechecking: Iterator<string, undefined>;

  constructor(env: CompletionsEnvironment, queue: CompletionsQueue, parts: Parts) {
    this.env = env;
    this.queue = queue;
    this.parts = parts;
    this.rechecking = queue.backlog.dependencies();
    const { facts } = env;
    facts.on("task:settled", (id, isCompleted, batch) => this.noteSettled(id, isCompleted, batch));
    facts.on("task:vanished", (id) => this.noteVanished(id));
    facts.on("journal:completed", (id) => this.noteCompleted(id));
  }

  /** Lists a piece of `outbox/` and `failed/`; after the last one it is known what has completed under which spelling. */
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

  /** @param batch what its lines came to, when it is one */
  private noteSettled(id: string, isCompleted: boolean, batch?: BatchCounts): void {
    this.queue.dispatcher.onSettled(id);
    if (isCompleted) {
      this.counts.completed++;
      this.noteCompleted(id);
      if (batch !== undefined) this.tellFailedLines(id, batch);
    } else {
      this.counts.failed++;
      if (this.parts.ownerOf(id) !== undefined) this.counts.failedNodes++;
      else this.tellFailure(id);
    }
  }

  /**
   * It is gone from `processing/` and no worker has said so: one that is not our child has settled it, or another program has taken it
   * away. Our own children say so themselves, if late.
   */
  private noteVanished(id: string): void {
    let record: SettledRecord["record"] | undefined;
    try {
      record = readSettled(this.env.trays, id)?.record;
    } catch {
      // The disk does not give it now: it stays uncounted.
    }
    // Without a run it is the record of a file that was refused.
    if (record === undefined || record.attempts === 0) return;
    if (!this.queue.pool.workers.isOrWasOwn(ownerPrefixOf(record.lease)))
      this.env.facts.emit("task:settled", id, record.status === "completed", record.batch);
  }

  /** A batch has completed when each of its lines has a result: a good one, or not. */
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

  /** The record is opened only for the few that are told. */
  private tellFailure(id: string): void {
    const see = `see \`mailchute show ${id}\``;
    this.env.alerts.alert("task_failed", `${id} failed for good; ${see}`, () => {
      const error = this.errorOf(id);
      return `${id} failed for good${error === "" ? "" : `: ${error}`}; ${see}`;
    });
  }

  /** One line; empty when the record cannot be read. */
  private errorOf(id: string): string {
    try {
      const record = readSettled(this.env.trays, id)?.record;
      const error = record?.status === "failed" ? headlineOf(record.error) : "";
      return error.length > ERROR_CHARS_MAX ? `${error.slice(0, ERROR_CHARS_MAX)}…` : error;
    } catch {
      return "";
    }
  }

  /** The task of a part may have completed without what the part wants of it, as with a question: the part knows. */
  private noteCompleted(id: string): void {
    if (this.parts.isDone(id) !== false) this.queue.backlog.resolveDependency(id);
  }

  /** In any case. False, too, while it is found out whether it has completed under another spelling. */
  isMet(dependency: string): boolean {
    const { trays } = this.env;
    const result = join(trays.outbox, resultName(dependency));
    return (
      this.parts.isDone(dependency) ??
      (trays.storage.look(result) !== undefined || this.queue.finishedIds.hasResult(dependency))
    );
  }

  /** Checks whether the results that others wait for are there, in case an event was lost: a few of them in each call, in turn. */
  recheckDependencies(): void {
    const { backlog } = this.queue;
    for (let count = 0; count < RECHECKS_MAX; count++) {
      const { value: id, done } = this.rechecking.next();
      if (done === true) {
        this.rechecking = backlog.dependencies();
        return;
      }
      if (this.isMet(id)) backlog.resolveDependency(id);
    }
  }
}
