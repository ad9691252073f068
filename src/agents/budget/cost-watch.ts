/** Watches the costs of a run while it goes on: shows them to other runs, and stops it when a budget or its quota is used up. */
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { Assignment } from "../agent.ts";
import type { CostRecord } from "../cost-records.ts";
import type { MeterReading } from "../meter-reading.ts";
import type { Usage } from "../stream/facts.ts";
import { isRunOver, type RunState } from "../stream/run-state.ts";
import type { RunBudget } from "./run-budget.ts";

/** What a run has used. */
export interface RunCosts {
  readonly state: RunState;
  costRecord(outcome: string): CostRecord;
  /** What will then be booked for its session, including this run. */
  bookedThen(): Usage;
}

interface CostWatchParts {
  budget: RunBudget;
  costs: RunCosts;
  owner: string;
  sessionKey: string;
  /** What its meter has seen; undefined without a meter. */
  reading: MeterReading | undefined;
  stop: (reason: "budget" | "quota") => void;
}

/** The time between two looks, and between two versions of its file (ms). */
const LOOK_MS = 1000;
/** The time between two versions of its file within an answer (ms). */
const SHOW_MS = 200;

/** The time between two tries to book what could not be booked (ms). */
const BOOK_AGAIN_MS = 5000;

export class CostWatch {
  /** Why it was stopped; undefined when it was not stopped. */
  halt: AttemptOutcome | undefined;
  private readonly deps: CostWatchParts;
  private readonly lease: string;
  private timer: NodeJS.Timeout | undefined;
  private written = "";
  private shownMs = Number.NEGATIVE_INFINITY;

  constructor({ lease }: Pick<Assignment, "lease">, parts: CostWatchParts) {
    this.lease = lease;
    this.deps = parts;
  }

  /** Called when the program runs. */
  start(): void {
    this.look();
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** Whether a request may go to the service. If a budget is used up, the run is stopped. */
  mayAsk(): boolean {
    this.look();
    if (this.halt !== undefined) return false;
    const { budget, costs } = this.deps;
    // A run that is over keeps its outcome, and still may not ask for more.
    return (
      !isRunOver(costs.state) || budget.haltNow(costs.costRecord("running"), false) === undefined
    );
  }

  /** Called when its tokens have changed: other runs may ask at once whether a budget is used up. @param isEnd of an answer */
  noteUsed(isEnd: boolean): void {
    const nowMs = performance.now();
    // Some services name the tokens with each piece of an answer.
    if (!isEnd && nowMs - this.shownMs < SHOW_MS) return;
    this.shownMs = nowMs;
    this.show(this.deps.costs.costRecord("running"));
  }

  /** Called when a turn has ended. It checks the limits at once, because no other turn may begin above them. */
  turnEnded(): void {
    if (this.timer !== undefined) this.look();
  }

  /** Called when the program has ended. */
  end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** @param isBooked false when the disk refused that: it is tried again, because other runs would wait for this one */
  close(isBooked: boolean): void {
    const { budget } = this.deps;
    if (isBooked) {
      budget.running.remove(this.lease);
      return;
    }
    budget.running.noteUnbooked(this.lease);
    const again = setInterval(() => {
      if (!budget.running.isUnbooked(this.lease)) clearInterval(again);
      else budget.bookLeft().catch(() => {});
    }, BOOK_AGAIN_MS).unref();
  }

  private look(): void {
    const { budget, costs, stop } = this.deps;
    if (this.halt !== undefined) return;
    const record = costs.costRecord("running");
    this.show(record);
    const { state } = costs;
    // The run is over, so its outcome stays.
    if (isRunOver(state)) return;
    this.halt = budget.haltNow(record, state.turn === "ended");
    if (this.halt !== undefined) stop("budget");
    else if (
      state.openTools.size === 0 &&
      this.deps.reading?.explainLimit(Date.now()) !== undefined
    )
      stop("quota");
  }

  private show(record: CostRecord): void {
    const { budget, costs, owner, sessionKey } = this.deps;
    const booked = costs.bookedThen();
    const { at: _at, duration_ms: _duration, ...used } = record;
    const text = JSON.stringify([used, booked]);
    // A call without a task has no lease.
    if (text === this.written || this.lease === "") return;
    try {
      budget.running.write(this.lease, { v: 1, owner, record, session_key: sessionKey, booked });
      this.written = text;
    } catch {
      // The disk is full. The run goes on, and other runs do not see its costs.
    }
  }
}
