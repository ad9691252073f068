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
import { Heap } from "../../core/heap.ts";
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
import { isBlank, type Line, LineReader } from "../../mailbox/submit/batch-lines.ts";
import { isVerified, markStart, runVerify } from "../../worker/check.ts";
import type { Attempt, AttemptTools, RunHooks } from "../../worker/runner.ts";
import { limiterFor } from "../../worker/task-defaults.ts";
import { BatchOutput } from "./batch-output.ts";
import { type LineRun, LineRuns } from "./line-run.ts";

/** With these functions the run reports to its worker, and asks it how many programs may run. */
type BatchHooks = Omit<RunHooks, "onPhase">;

export interface BatchEnd {
  outcome: AttemptOutcome;
  counts: BatchCounts;
}

/** How many lines may wait for their next run. No new line starts beyond that, so that memory stays bounded. */
const WAITING_MAX = 4096;
/** The clock is read after this many lines that need no run, and after each piece of the file. */
const LINES_PER_LOOK = 16;
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
  private readonly lines: LineRuns;
  private readonly moduleMax: number;

  private isAtEnd = false;
  /** A line that waits because too many others run. */
  private head: LineRun | undefined;
  private readonly waiting = new Heap<LineRun>((a, b) => a.dueMs - b.dueMs);
  private readonly running = new Slots<LineRun>();
  private moduleCount = 0;
  private room = 0;

  private sliceMs = 0;
  /** Lines since the clock was last read, and the position in the file at that time. */
  private unlookedCount = 0;
  private lookedAtByte = 0;
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
    this.lines = new LineRuns(id, tools);
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
    this.output.work(nowMs, this.running.size, this.waiting.size);
    this.startMore();
    this.endWhenThrough();
  }

  private startMore(): void {
    while (this.mayStart()) {
      const line = this.takeLine();
      if (line === undefined) return;
      if (!this.hasRoomFor(line)) {
        this.head = line;
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
    const isDone = this.isAtEnd && this.head === undefined && this.waiting.size === 0;
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
    this.output.tell(nowMs, this.running.size, this.waiting.size);
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

  /**
   * A line that is due for its next run, or the next line of the file. Bad lines on the way get their result. Undefined: no line
   * can start now, or other work of the process comes first.
   */
  private takeLine(): LineRun | undefined {
    const { head } = this;
    if (head !== undefined) {
      this.head = undefined;
      return head;
    }
    const due = this.waiting.peek();
    if (due !== undefined && due.dueMs <= this.nowMs()) {
      this.waiting.pop();
      return due;
    }
    if (this.waiting.size >= WAITING_MAX) return undefined;
    while (!this.isAtEnd && !this.isGivingWay && !this.isCut) {
      const line = this.nextLine();
      const run = line && this.lines.begin(line);
      if (typeof run === "object") return run;
      if (line !== undefined && run !== undefined) this.refuse(line.number, run);
      this.noteLine();
    }
    return undefined;
  }

  /** The next line of the file. Undefined when it is not read yet, is blank, or has a result already. */
  private nextLine(): Line | undefined {
    try {
      const line = this.deps.reader.next();
      if (line === undefined) this.isAtEnd = true;
      if (line === undefined || line === "later") return undefined;
      if (this.deps.results.done.has(line.number)) return undefined;
      return line.text === undefined || !isBlank(line.text) ? line : undefined;
    } catch (error) {
      this.giveUp(outcomeOfFault(error));
      return undefined;
    }
  }

  /** To skip one line is little work, but to read the file up to it may take long. So this checks both. */
  private noteLine(): void {
    const { position } = this.deps.reader;
    this.unlookedCount++;
    if (this.unlookedCount < LINES_PER_LOOK && position === this.lookedAtByte) return;
    this.unlookedCount = 0;
    this.lookedAtByte = position;
    this.giveWayInTime();
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
    this.waiting.push(line);
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
