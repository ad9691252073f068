/**
 * Decides whether one run may start and go on within its budgets. `analytics/costs.<day>.jsonl` says what ended runs have spent, and
 * `analytics/running-costs/` what running ones use. Above a soft limit, it asks a person, and the task waits without a worker.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { compact } from "../../core/compact.ts";
import { systemCode } from "../../core/errors.ts";
import { submissionOf } from "../../core/names.ts";
import { type AttemptOutcome, failed } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { costsOf, stateTree } from "../../core/state-tree.ts";
import { underLock } from "../../host/file-lock.ts";
import { fileOfDay } from "../../journal/daily.ts";
import { Journal } from "../../journal/journal.ts";
import { holdOf } from "../../questions/question-file.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import type { Assignment } from "../agent.ts";
import { type CostRecord, hasUsed } from "../cost-records.ts";
import { noteContinuedBooked } from "../stream/continued.ts";
import { noteBooked } from "../stream/session-file.ts";
import {
  addSpent,
  keysOf,
  limitNow,
  questionContext,
  questionId,
  questionText,
  type RunOwner,
  reserveFor,
  type Scope,
  type Spent,
  scopesOf,
} from "./limits.ts";
import { planOf } from "./plan-of.ts";
import { RunningCosts } from "./running-costs.ts";
import { ownerOf, SpentSums, spentBy } from "./spent-sums.ts";

/** When a waiting task looks again (ms). After a new question it looks sooner. */
const AGAIN_MS = { min: 1000, max: 60_000 };
/** How many questions may be asked about one limit. */
const QUESTIONS_MAX = 1000;

/** Sums of each state tree that this process runs tasks of. */
const sumsByTree = new Map<string, SpentSums>();

/** Why a run does not start, or does not go on. */
interface Halt {
  kind: "ask" | "refused" | "beside";
  /** The question, or what it waits for. */
  text: string;
  waitMs: number;
  /** The gate at which the task waits for the answer. */
  hold?: string;
  /** It is about the budget of its agent. */
  isOfAgent?: true | undefined;
}

export class RunBudget {
  readonly running: RunningCosts;
  private readonly owner: RunOwner;
  private readonly questions: QuestionStore;
  private readonly sums: SpentSums;

  constructor(
    private readonly assignment: Assignment,
    private readonly agent: AgentSettings,
  ) {
    const { stateDir, lease, task } = assignment;
    this.owner = { taskId: task.id, submission: submissionOf(lease), agent: agent.name };
    this.questions = new QuestionStore(stateDir);
    this.running = new RunningCosts(stateDir);
    this.sums = sumsByTree.get(stateDir) ?? new SpentSums(stateDir);
    sumsByTree.set(stateDir, this.sums);
  }

  /**
   * Books what runs of killed processes used. It writes the line, then the session's document, then removes the file. After a crash in
   * between, the next call repeats this and does not write the line again. When the disk refuses, a later run does it.
   */
  async bookLeft(): Promise<void> {
    if (this.running.left().length === 0) return;
    try {
      await underLock(join(this.assignment.stateDir, "analytics", "running-costs.lock"), () =>
        this.bookUnderLock(),
      );
    } catch (error) {
      if (systemCode(error) === "") throw error;
    }
  }

  private bookUnderLock(): void {
    const { stateDir, settings } = this.assignment;
    const journal = new Journal(fileOfDay(costsOf(stateTree(stateDir)), Date.now()), true);
    try {
      const left = this.running.left();
      this.sums.refresh(settings);
      for (const { lease, cost } of left) {
        if (hasUsed(cost.record) && !this.sums.isBooked(cost.record))
          journal.append(JSON.stringify({ ...cost.record, outcome: "killed" }));
        if (!journal.flush()) return;
        const { session_id: sessionId } = cost.record;
        noteBooked(join(stateDir, "sessions"), cost.session_key, sessionId, cost.booked);
        if (sessionId !== null) noteContinuedBooked(stateDir, sessionId, cost.booked);
        this.running.remove(lease);
      }
    } finally {
      journal.close();
    }
  }

  /** @returns why this run must not start now; undefined when it may */
  enter(): AttemptOutcome | undefined {
    const scopes = this.scopes();
    if (scopes.length === 0) return undefined;
    const beside = this.beside();
    for (const scope of scopes) {
      const others = beside
        .filter((record) => isOf(record, scope.key))
        .map((one) => this.spent(one));
      const halt = this.haltOf(scope, others, { isStart: true });
      if (halt !== undefined) return outcomeOf(halt);
    }
    return undefined;
  }

  /**
   * Why a run must not go on.
   * @param isBetweenTurns a turn has ended and another one will follow
   */
  haltNow(record: CostRecord, isBetweenTurns: boolean): AttemptOutcome | undefined {
    const scopes = this.scopes();
    if (scopes.length === 0) return undefined;
    const all = [...this.beside(), record];
    for (const scope of scopes) {
      const runs = all.filter((one) => isOf(one, scope.key)).map((one) => this.spent(one));
      const halt = this.haltOf(scope, runs, { isStart: false, isBetweenTurns });
      if (halt !== undefined) return outcomeOf(halt);
    }
    return undefined;
  }

  private haltOf(
    scope: Scope,
    runs: readonly Spent[],
    when: { isStart: true } | { isStart: false; isBetweenTurns: boolean },
  ): Halt | undefined {
    const booked = this.sums.of(scope.key);
    const spent = runs.reduce(addSpent, booked);
    for (const limit of scope.limits) {
      const { measure } = limit;
      const { answers, id } = this.asked(scope, measure);
      const now = limitNow(limit, answers);
      const isOver = spent[measure] >= now.soft;
      const isFarOver = now.hard !== undefined && spent[measure] >= now.hard;
      if (when.isStart ? isOver : isFarOver || (isOver && when.isBetweenTurns)) {
        if (now.isRefused)
          return {
            kind: "refused",
            text: `${scope.what} is over its budget, and the answer to ${id} was no`,
            waitMs: 0,
          };
        return this.ask(
          id,
          scope,
          questionText(scope, limit, now, spent[measure]),
          questionContext(limit),
        );
      }
      if (!isOver) this.questions.close(id);
      // Other runs may use up the rest of the budget, so this one waits until they end.
      if (
        when.isStart &&
        runs.length > 0 &&
        booked[measure] + reserveFor(measure, booked, runs) >= now.soft
      ) {
        const usualMs = booked.runs === 0 ? 0 : booked.time / booked.runs;
        return {
          kind: "beside",
          text: `${scope.what}: the rest of the budget is kept for runs in progress`,
          waitMs: within(usualMs / 4),
        };
      }
    }
    return undefined;
  }

  private ask(id: string, scope: Scope, question: string, context: string): Halt {
    const nowMs = Date.now();
    const { who, agents, endsAtMs } = scope;
    try {
      this.questions.ask({
        id,
        question,
        context,
        who,
        agents,
        expects: "limit",
        asked_at_ms: nowMs,
        ends_at_ms: endsAtMs,
      });
    } catch {
      // The disk is full. The question is asked when the task looks again.
    }
    const askedMs = this.questions.find(id)?.asked_at_ms ?? nowMs;
    return {
      kind: "ask",
      text: `${question} Answer with: mailchute answer ${id} yes`,
      waitMs: within((nowMs - askedMs) / 4),
      hold: holdOf(id),
      isOfAgent: agents.length > 0 ? true : undefined,
    };
  }

  /** The answers about a limit, and the id of the question that is open or comes next. */
  private asked(
    scope: Scope,
    measure: Scope["limits"][number]["measure"],
  ): { answers: string[]; id: string } {
    const answers: string[] = [];
    for (let n = 1; ; n++) {
      const id = questionId(scope, measure, n, hash);
      const answer = n > QUESTIONS_MAX ? undefined : this.questions.answerOf(id);
      if (answer === undefined) return { answers, id };
      answers.push(answer);
    }
  }

  private scopes(): Scope[] {
    const { task, settings } = this.assignment;
    const plan = planOf(this.assignment);
    const budgets = {
      task: task.budget,
      plan: plan?.budget,
      agent: this.agent.budget,
      day: settings.budgets,
    };
    return scopesOf({ ...this.owner, ...compact({ plan: plan?.name }) }, budgets, Date.now());
  }

  /** The other runs that are running and are not booked yet. */
  private beside(): CostRecord[] {
    // They are listed before the sums are read. So a run that is booked in between is in the sums and is not counted twice.
    const beside = this.running.beside(this.assignment.lease);
    try {
      this.sums.refresh(this.assignment.settings);
    } catch (error) {
      if (systemCode(error) === "") throw error;
      // The sums that were read so far count.
    }
    return beside.filter((record) => !this.sums.isBooked(record));
  }

  private spent(record: CostRecord): Spent {
    return spentBy(record, this.assignment.settings.prices);
  }
}

function isOf(record: CostRecord, key: string): boolean {
  return keysOf(ownerOf(record), record.at * 1000).includes(key);
}

function outcomeOf({ kind, text, waitMs, hold, isOfAgent }: Halt): AttemptOutcome {
  if (kind === "refused") return failed("budget", "ErrBudget", text, { canRetry: false });
  return { kind: "deferred", message: text, delayMs: waitMs, ...compact({ hold, isOfAgent }) };
}

function within(ms: number): number {
  return Math.round(Math.min(AGAIN_MS.max, Math.max(AGAIN_MS.min, ms)));
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
