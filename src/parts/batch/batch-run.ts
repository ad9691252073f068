/**
 * Runs the lines of a claimed batch with bounded concurrency and collects their results. Each line is retried by itself, inside
 * this run. Every few milliseconds the run lets other work of the process go on, and writes the results so far. A crash repeats
 * at most the lines that were running and those that ended since the last write.
 */
import { join } from "node:path";
import {
  type Assignment,
  brokenAgent,
  type StopReason,
  StopSignal,
  stoppedOutcome,
  timeoutOf,
} from "../../agents/agent.ts";
import { closeBackground } from "../../agents/background.ts";
import { encodeBadLine, encodeLineResult } from "../../codec/batch-codec.ts";
import { type BatchCounts, noCounts, Slots } from "../../core/batch.ts";
import { ErrInvalidTask, messageOf } from "../../core/errors.ts";
import { BAD_LINES_MAX, SLICE_MS_MAX } from "../../core/limits.ts";
import { leaseOf, runOf } from "../../core/names.ts";
import {
  type AttemptOutcome,
  type Completed,
  decide,
  deferred,
  type Failed,
  failed,
  invalid,
  retryPolicyOf,
  unwritable,
} from "../../core/outcome.ts";
import type { RunUsage } from "../../core/run-usage.ts";
import type { Claim } from "../../mailbox/claim/claim.ts";
import { explainBadClaim } from "../../mailbox/files/dropped-file.ts";
import { type BatchResults, takeOverResults } from "../../mailbox/settle/batch-results.ts";
import { dropOwnResults } from "../../mailbox/settle/batch-settle.ts";
import { LineReader } from "../../mailbox/submit/batch-lines.ts";
import { isVerified, markStart, runVerify } from "../../worker/check.ts";
import type { Attempt, AttemptTools, RunHooks } from "../../worker/runner.ts";
import { limiterFor, meterFor, wallsFor } from "../../worker/task-defaults.ts";
import { BatchOutput } from "./batch-output.ts";
import { LineQueue } from "./line-queue.ts";
import { type LineRun, LineRuns } from "./line-run.ts";

/** With these functions the run reports to its worker, and asks it how many programs may run. */
type BatchHooks = Omit<RunHooks, "onPhase">;

export interface BatchEnd {
  outcome: AttemptOutcome;
  counts: BatchCounts;
}

const PULSE_MS = 100;

interface BatchRunParts {
  tools: AttemptTools;
  claim: Claim;
  stop: StopSignal;
  usage: RunUsage;
  hooks: BatchHooks;
  reader: LineReader;
  results: BatchResults;
}

/**
 * Runs a claimed batch. Resolves when every line has a result, or when the batch was stopped or failed and none of its lines
 * runs any more. Never rejects.
 */
export async function runBatch(
  tools: AttemptTools,
  { claim, stop, usage }: Pick<Attempt, "claim" | "stop" | "usage">,
  hooks: BatchHooks,
): Promise<BatchEnd> {
  let reader: LineReader | undefined;
  let results: BatchResults;
  try {
    reader = new LineReader(claim.path, {
      explainBad: (facts) =>
        explainBadClaim(tools.trays, claim.name, claim.path, facts, Number.POSITIVE_INFINITY),
    });
    results = await takeOverResults(tools.trays, claim.name, true);
  } catch (error) {
    reader?.close();
    return { outcome: outcomeOfFault(error), counts: noCounts() };
  }
  return new BatchRun({ tools, claim, stop, usage, hooks, reader, results }).run();
}

class BatchRun {
  private readonly lease: string;
  private readonly runDir: string;
  private readonly output: BatchOutput;
  private readonly lines: LineQueue;
  private readonly moduleMax: number;

  private readonly running = new Slots<LineRun>();
  private moduleCount = 0;
  private room = 0;

  private sliceMs = 0;
  private isGivingWay = false;
  private isTurnDue = false;
  private longestLimitMs = 0;
  private pulse: NodeJS.Timeout | undefined;
  private isOver = false;
  private fault: AttemptOutcome | undefined;
  private resolve: (end: BatchEnd) => void = () => {};

  constructor(private readonly deps: BatchRunParts) {
    const { tools, claim, hooks, reader, results } = deps;
    const { trays, settings } = tools;
    const { id } = claim.name;
    this.lease = leaseOf(claim.name);
    this.runDir = join(tools.tree.runs, runOf(claim.name));
    const { runDir } = this;
    const { onProgress } = hooks;
    const onUnsynced = (error: unknown): void => this.giveUp(unsynced(error));
    const parts = { id, trays, reader, results, runDir, onProgress, onUnsynced };
    this.output = new BatchOutput(parts, this.nowMs());
    this.lines = new LineQueue({
      reader,
      runs: new LineRuns(id, tools),
      done: results.done,
      refuse: (line, why) => this.refuse(line, why),
      onLook: () => this.giveWayInTime(),
    });
    this.moduleMax = settings.batch_concurrency;
  }

  run(): Promise<BatchEnd> {
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.pulse = setInterval(() => this.scheduleTurn(), PULSE_MS);
      this.deps.stop.onStop((reason) => {
        for (const line of this.running.list()) line.stop.stop(reason);
        this.scheduleTurn();
      });
      this.scheduleTurn();
    });
  }

  private nowMs(): number {
    return this.deps.tools.trays.clock.monotonicMs();
  }

  /** True when running lines may end but no new line starts. */
  private get isCut(): boolean {
    return this.deps.stop.reason !== undefined || this.fault !== undefined;
  }

  // ── turns ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private scheduleTurn(): void {
    if (this.isTurnDue || this.isOver) return;
    this.isTurnDue = true;
    setImmediate(() => {
      this.isTurnDue = false;
      this.turn();
    });
  }

  /** Writes new results, reports the progress and starts more lines. */
  private turn(): void {
    if (this.isOver) return;
    const nowMs = this.nowMs();
    this.sliceMs = nowMs;
    this.isGivingWay = false;
    this.output.flush(nowMs);
    this.room = this.deps.hooks.room();
    const restMs = this.longestLimitMs + 2 * this.deps.tools.settings.grace_ms + 1000;
    if (this.longestLimitMs > 0) this.deps.hooks.onDeadline(nowMs + restMs);
    this.output.work(nowMs, this.running.size, this.lines.waitingCount);
    this.startMore();
    this.endWhenThrough();
  }

  private startMore(): void {
    while (this.mayStart()) {
      const line = this.takeLine();
      if (line === undefined) return;
      if (!this.hasRoomFor(line)) {
        this.lines.putBack(line);
        return;
      }
      this.start(line);
      // A handler that never awaits has run completely in that call.
      this.giveWayInTime();
    }
  }

  private mayStart(): boolean {
    return (
      !this.isGivingWay &&
      !this.isOver &&
      !this.isCut &&
      this.room > 0 &&
      !this.output.isRefused &&
      this.moduleCount < this.moduleMax
    );
  }

  private giveWayInTime(): void {
    if (this.nowMs() - this.sliceMs <= SLICE_MS_MAX && !this.deps.results.isFull) return;
    this.isGivingWay = true;
    this.scheduleTurn();
  }

  private hasRoomFor(line: LineRun): boolean {
    return line.isModule || this.running.size - this.moduleCount < this.room;
  }

  private endWhenThrough(): void {
    if (this.running.size > 0 || this.isOver) return;
    const isDone = this.lines.isEmpty;
    // Results that cannot be written now are kept and tried again. A batch that must stop does not wait: those lines run again.
    if (isDone && this.output.isRefused && !this.isCut) return;
    if (isDone || this.isCut) this.end();
  }

  private end(): void {
    const nowMs = this.nowMs();
    this.output.flushNow(nowMs);
    if (this.output.isRefused && !this.isCut) return;
    this.isOver = true;
    clearInterval(this.pulse);
    this.deps.stop.onStop(undefined);
    this.output.tell(nowMs, this.running.size, this.lines.waitingCount);
    this.deps.reader.close();
    void this.finish(this.deps.stop.reason);
  }

  /**
   * The results must be on disk before the batch is settled. `results.sync` keeps failing after one failure; a separate sync would
   * not report what an earlier one lost.
   */
  private async finish(reason: StopReason | undefined): Promise<void> {
    const { tools, results } = this.deps;
    if (tools.trays.durability === "power") {
      try {
        await results.sync();
      } catch (error) {
        this.fault ??= unsynced(error);
      }
    }
    results.close();
    if (reason === "fenced") this.dropResults();
    const { counts } = results;
    const verdict = counts.failures === 0 ? "pass" : "fail";
    const ended = { output: null, verdict, verdictReason: "", exitCode: null };
    const fault = reason === undefined ? this.fault : stoppedOutcome(reason, 0);
    this.resolve({ outcome: fault ?? { kind: "completed", ...ended }, counts });
  }

  /** The worker that holds the lease now has copied what it needs. Once the batch is settled, no process needs the rest. */
  private dropResults(): void {
    try {
      dropOwnResults(this.deps.tools.trays, this.deps.claim.name);
    } catch {
      // The sweep removes it later.
    }
  }

  // ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private takeLine(): LineRun | undefined {
    try {
      return this.lines.take(this.nowMs(), () => !this.isGivingWay && !this.isCut);
    } catch (error) {
      this.giveUp(outcomeOfFault(error));
      return undefined;
    }
  }

  /** Running lines may end; no new line starts. */
  private giveUp(fault: AttemptOutcome): void {
    this.fault = fault;
    this.scheduleTurn();
  }

  private refuse(number: number, why: string): void {
    const id = `${this.deps.claim.name.id}#${number}`;
    this.addResult(number, encodeBadLine(number, id, why), false, true);
    if (this.deps.results.counts.bad > BAD_LINES_MAX) this.giveUp(tooManyBad(number, why));
    this.scheduleTurn();
  }

  private addResult(line: number, text: string, isCompleted: boolean, isBad = false): void {
    const { results, tools } = this.deps;
    results.add(line, text, isCompleted, isBad);
    const max = tools.settings.batch_results_bytes_max;
    if (results.bytes > max && this.fault === undefined) this.giveUp(tooMuch(max));
  }

  private start(line: LineRun): void {
    const { tools } = this.deps;
    const { settings, tree } = tools;
    const runDir = `${this.runDir}/${line.number}`;
    line.stop = new StopSignal();
    line.startedMs = this.nowMs();
    if (line.isModule) this.moduleCount++;
    line.slot = this.running.add(line);
    const assignment = {
      task: line.task,
      taskText: line.text,
      attempt: line.attempt,
      lease: `${this.lease}.${line.number}`,
      claimFile: this.deps.claim.path,
      runDir,
      stateDir: tree.dir,
      settings,
      stop: line.stop,
      usage: this.deps.usage,
      limiter: limiterFor(tools, line.task, line.agent.settings),
      walls: wallsFor(tools, line.agent.settings),
      makeMeter: meterFor(tools, line.agent.settings),
      onProgress: (details: Record<string, unknown>) =>
        this.deps.hooks.onProgress({ line: line.number, ...details }),
      onStuck: () => {
        line.isStuck = true;
        this.deps.hooks.onStuck();
      },
    };
    const limitMs = line.isModule ? timeoutOf(assignment, line.agent.settings) : 0;
    this.longestLimitMs = Math.max(this.longestLimitMs, limitMs);
    const hindrance = markStart(assignment);
    const ran = hindrance === undefined ? line.agent.run(assignment) : Promise.resolve(hindrance);
    const checked = isVerified(line.task) ? this.verified(line, assignment, ran) : ran;
    (line.isModule ? checked : this.closed(line, assignment, checked)).then(
      (outcome) => this.ended(line, outcome),
      (error: unknown) => this.ended(line, brokenAgent(line.agent.name, error)),
    );
  }

  /** A line that reports success counts as done only when its `expect_files` and `verify` programs confirm it. */
  private async verified(
    line: LineRun,
    assignment: Assignment,
    ran: Promise<AttemptOutcome>,
  ): Promise<AttemptOutcome> {
    const outcome = await ran;
    if (outcome.kind !== "completed") return outcome;
    const limitMs = timeoutOf(assignment, line.agent.settings);
    return (await runVerify(assignment, limitMs, line.startedMs, () => this.nowMs())) ?? outcome;
  }

  private async closed(
    line: LineRun,
    assignment: Assignment,
    checked: Promise<AttemptOutcome>,
  ): Promise<AttemptOutcome> {
    try {
      return await checked;
    } finally {
      await closeBackground(line.agent, assignment);
    }
  }

  private ended(line: LineRun, outcome: AttemptOutcome): void {
    this.running.remove(line.slot);
    if (line.isModule) this.moduleCount--;
    this.decide(line, outcome);
    this.scheduleTurn();
    this.startMore();
  }

  private decide(line: LineRun, outcome: AttemptOutcome): void {
    if (outcome.kind === "completed") {
      this.settle(line, outcome);
      return;
    }
    // A handler that did not stop at its limit would not stop the next time either. This process ends because of it; a retry of
    // the line would end the next process, too.
    const known =
      line.isStuck && outcome.kind === "failed" ? { ...outcome, canRetry: false } : outcome;
    const random = this.deps.tools.trays.clock.random();
    const policy = retryPolicyOf(this.deps.tools.settings, line.task);
    const decision = decide(known, line.attempt, policy, random);
    if (known.kind === "failed" && decision.action === "fail") {
      // A line that was cancelled with its batch gets no result, so that a retry of the batch runs it.
      if (this.deps.stop.reason === undefined || known.failure !== "cancelled")
        this.settle(line, known);
      return;
    }
    if (this.deps.stop.reason !== undefined) return;
    if (decision.action === "retry") line.attempt++;
    line.dueMs = this.nowMs() + ("delayMs" in decision ? decision.delayMs : 0);
    this.lines.addRetry(line);
  }

  private settle(line: LineRun, outcome: Completed | Failed): void {
    const durationMs = Math.round(this.nowMs() - line.startedMs);
    const encode = (known: Completed | Failed): string =>
      encodeLineResult(line.number, line.task.id, line.attempt, durationMs, known);
    let text: string;
    let isCompleted = outcome.kind === "completed";
    try {
      text = encode(outcome);
    } catch (error) {
      isCompleted = false;
      text = encode(unwritable(error));
    }
    this.addResult(line.number, text, isCompleted);
  }
}

/** A batch that is not a regular file fails for good. After a read error of the disk it is tried again. */
function outcomeOfFault(error: unknown): AttemptOutcome {
  if (!(error instanceof ErrInvalidTask)) return deferred(`cannot read it: ${messageOf(error)}`);
  return invalid(error.code, error.message);
}

function tooManyBad(line: number, why: string): AttemptOutcome {
  const message = `more than ${BAD_LINES_MAX} of its lines are no task; line ${line}: ${why}`;
  return invalid("ErrInvalidTask", message);
}

function tooMuch(bytesMax: number): AttemptOutcome {
  const message = `its results have more than ${bytesMax} bytes (setting: batch_results_bytes_max)`;
  return failed("output", "ErrOutputLimit", message, { canRetry: false });
}

function unsynced(error: unknown): AttemptOutcome {
  return deferred(`cannot save the results of its lines: ${messageOf(error)}`);
}
