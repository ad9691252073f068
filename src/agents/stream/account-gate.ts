/** The gate of an account, for one run: asks whether the run may start, and notes its answer or its refusal. */
import { messageOf } from "../../core/errors.ts";
import { type AttemptOutcome, deferred } from "../../core/outcome.ts";
import type { Settings } from "../../core/settings.ts";
import { reserveOf } from "../accounts/account-settings.ts";
import { accountsDir, GateFile } from "../accounts/gate-file.ts";
import { type Entry, type GateDocument, quotaHold } from "../accounts/gate-rules.ts";
import type { Fact } from "./facts.ts";
import type { RunVerdict } from "./run-outcome.ts";
import type { RunState } from "./run-state.ts";

/** Why a run does not start: the gate is closed until a time, or the gate cannot be written. */
export type Refused = Extract<Entry, { may: false }> | { may: false; hindrance: AttemptOutcome };

export class AccountGate {
  private readonly file: GateFile;
  private readonly isReserved: boolean;
  private hasPassed = false;
  /** How full each window was when it was last noted (percent). */
  private readonly noted = new Map<string, number>();
  private noting: Promise<void> = Promise.resolve();

  /** @param owner the owner of the run's lease */
  constructor(
    readonly account: string,
    private readonly owner: string,
    all: Settings["accounts"],
  ) {
    const reservePct = reserveOf(account, all);
    this.isReserved = reservePct > 0;
    this.file = new GateFile(accountsDir(), account, reservePct);
  }

  /** @returns why this run must not start now; undefined when it may */
  async enter(): Promise<Refused | undefined> {
    try {
      const entry = await this.file.enter(this.owner, Date.now());
      return entry.may ? undefined : entry;
    } catch (error) {
      const why = `the gate of account ${this.account} cannot be written: ${messageOf(error)}`;
      return { may: false, hindrance: deferred(why) };
    }
  }

  /** The model has answered: the next run may start. Does not wait for the disk. */
  pass(): void {
    if (this.hasPassed) return;
    this.hasPassed = true;
    // If the gate cannot be written, it opens when its time is over.
    this.file.pass(this.owner).catch(() => {});
  }

  /** Remembers how full a window is, if a part of it is reserved for the owner of the account. Does not wait for the disk. */
  noteQuota({ window, usedPct, resetsAtMs }: Extract<Fact, { fact: "quota" }>): void {
    if (!this.isReserved || usedPct === null || resetsAtMs === null) return;
    const name = window ?? "all";
    const pct = Math.floor(usedPct);
    if (this.noted.get(name) === pct) return;
    this.noted.set(name, pct);
    const full = { used_pct: pct, resets_at_ms: resetsAtMs };
    this.noting = this.noting.then(() =>
      // If this cannot be written, the state of the window stays unknown.
      this.file.noteWindow(name, full, Date.now()).catch(() => {}),
    );
  }

  async leave(): Promise<void> {
    await this.noting;
    await this.file.leave(this.owner).catch(() => {});
  }

  /** A refused run closes the gate for all runs of the account, and waits until it opens. */
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
      // The gate could not be closed. This task waits as its verdict says, and other tasks meet the same refusal.
      return verdict;
    }
    const outcome = waitFor(this.account, { untilMs: gate.until_ms, why: reason }, nowMs);
    return { next: "outcome", outcome };
  }
}

/** The task waits until the gate opens, without a worker. */
export function waitFor(
  account: string,
  { untilMs, why }: { untilMs: number; why: string },
  nowMs: number,
): AttemptOutcome & { kind: "deferred" } {
  const message = `account ${account}: no run before ${new Date(untilMs).toISOString()}: ${why}`;
  const delayMs = Math.max(0, untilMs - nowMs);
  return { kind: "deferred", message, delayMs, hold: quotaHold(account), isOfAgent: true };
}
