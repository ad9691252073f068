/** One run at the gate of its account: whether it may start, that it got an answer, and that it was refused. */
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, hindered } from "../../core/outcome.ts";
import { accountsDir, GateFile } from "../accounts/gate-file.ts";
import { type Entry, type GateDocument, quotaHold } from "../accounts/gate-rules.ts";
import type { RunVerdict } from "./run-outcome.ts";
import type { RunState } from "./run-state.ts";

export class AccountGate {
  private readonly file: GateFile;
  private readonly account: string;
  private readonly owner: string;
  private hasPassed = false;

  /** @param owner of the run's lease */
  constructor(account: string, owner: string) {
    this.account = account;
    this.owner = owner;
    this.file = new GateFile(accountsDir(), account);
  }

  /** @returns why this run does not start now; undefined: it may */
  async enter(): Promise<AttemptOutcome | undefined> {
    const nowMs = Date.now();
    let entry: Entry;
    try {
      entry = await this.file.enter(this.owner, nowMs);
    } catch (error) {
      return hindered(`the gate of account ${this.account} cannot be written: ${messageOf(error)}`);
    }
    return entry.may ? undefined : waitFor(this.account, entry.untilMs, entry.why, nowMs);
  }

  /** The model has answered: the next run may start. Does not wait for the disk. */
  pass(): void {
    if (this.hasPassed) return;
    this.hasPassed = true;
    // A gate that cannot be written opens by time.
    this.file.pass(this.owner).catch(() => {});
  }

  async leave(): Promise<void> {
    await this.file.leave(this.owner).catch(() => {});
  }

  /** A run that was refused closes the gate for all runs of the account, and waits for its time itself. */
  async noteEnd(state: RunState, verdict: RunVerdict): Promise<RunVerdict> {
    const isRefused = state.isQuotaRefused || state.lastEnd?.fault === "limit";
    if (!isRefused || verdict.next !== "outcome" || verdict.outcome.kind !== "deferred")
      return verdict;
    const nowMs = Date.now();
    const reason = state.lastEnd?.text ?? verdict.outcome.message;
    const refusal = {
      untilMs: state.quotaUntilMs ?? null,
      window: [...state.refusedWindows.keys()].at(-1) ?? null,
      reason,
    };
    let gate: GateDocument;
    try {
      gate = await this.file.close(refusal, nowMs);
    } catch {
      // Without a gate this task waits, and the others find out by themselves.
      return verdict;
    }
    return { next: "outcome", outcome: waitFor(this.account, gate.until_ms, reason, nowMs) };
  }
}

function waitFor(account: string, untilMs: number, why: string, nowMs: number): AttemptOutcome {
  const message = `account ${account}: no run before ${new Date(untilMs).toISOString()}: ${why}`;
  const delayMs = Math.max(0, untilMs - nowMs);
  return { kind: "deferred", message, delayMs, hold: quotaHold(account) };
}
