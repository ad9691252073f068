/** Meters a run while it is on: shows other runs what it has used, and stops it when a budget says so. */
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { Assignment } from "../agent.ts";
import type { CostRecord } from "../cost-records.ts";
import type { Usage } from "../stream/facts.ts";
import { isRunOver, type RunState } from "../stream/run-state.ts";
import type { RunBudget } from "./run-budget.ts";

/** What a run has used. */
export interface RunCosts {
  readonly state: RunState;
  costRecord(outcome: string): CostRecord;
  /** What is booked of its session once this run is. */
  bookedThen(): Usage;
}

interface MeterParts {
  budget: RunBudget;
  costs: RunCosts;
  owner: string;
  sessionKey: string;
  stop: () => void;
}

/** Between two looks, and two versions of its file (ms). */
const LOOK_MS = 1000;

export class RunMeter {
  /** Why it was stopped; undefined: it was not. */
  halt: AttemptOutcome | undefined;
  private readonly p: MeterParts;
  private readonly lease: string;
  private timer: NodeJS.Timeout | undefined;
  private written = "";

  constructor({ lease }: Pick<Assignment, "lease">, parts: MeterParts) {
    this.lease = lease;
    this.p = parts;
  }

  /** The program runs. */
  start(): void {
    this.look();
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** A turn has ended: another one must not begin over a limit, so this does not wait for the next look. */
  turnEnded(): void {
    if (this.timer !== undefined) this.look();
  }

  /** The program has ended. */
  end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** What it used is booked. */
  remove(): void {
    this.p.budget.running.remove(this.lease);
  }

  private look(): void {
    const { budget, costs, stop } = this.p;
    if (this.halt !== undefined) return;
    const record = costs.costRecord("running");
    this.show(record);
    const { state } = costs;
    // It is done: what it came to stands.
    if (isRunOver(state)) return;
    this.halt = budget.haltNow(record, state.turn === "ended");
    if (this.halt !== undefined) stop();
  }

  private show(record: CostRecord): void {
    const { budget, costs, owner, sessionKey } = this.p;
    const booked = costs.bookedThen();
    const { at: _at, duration_ms: _duration, ...used } = record;
    const text = JSON.stringify([used, booked]);
    // A call that is no task's has no lease.
    if (text === this.written || this.lease === "") return;
    try {
      budget.running.write(this.lease, { v: 1, owner, record, session_key: sessionKey, booked });
      this.written = text;
    } catch {
      // A full disk: the others do not see it, and it goes on.
    }
  }
}
