/** Records the facts of a run: its state, its session, the agent's log, and its costs. */
import fs from "node:fs";
import { basename, join } from "node:path";
import { compact } from "../../core/compact.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import { addDenied } from "../../core/run-usage.ts";
import { Journal } from "../../journal/journal.ts";
import type { Assignment } from "../agent.ts";
import { bookCost } from "../book-cost.ts";
import { planOf } from "../budget/plan-of.ts";
import { type CostRecord, hasUsed, priceOf } from "../cost-records.ts";
import type { MeterReading } from "../meter-reading.ts";
import type { AccountGate } from "./account-gate.ts";
import { type LogSubject, logRecordOf } from "./agent-log.ts";
import { noteContinuedBooked } from "./continued.ts";
import { type Fact, isAnswer, type Usage } from "./facts.ts";
import type { MessageFeed } from "./message-feed.ts";
import type { RunVerdict } from "./run-outcome.ts";
import {
  addUsage,
  applyFact,
  judgeFact,
  NO_USAGE,
  newRunState,
  type RunState,
  subtractUsage,
  tokensOf,
} from "./run-state.ts";
import { keepInRun, type SessionDocument, type SessionFile } from "./session-file.ts";
import { provesPacket } from "./session-proof.ts";

/** How much of its last text is kept for the next run (characters). */
const HAND_OFF_MAX = 4000;
/** The reason for the end of a run whose process was killed. */
const CUT_OFF = "It was cut off: the process that ran it was killed.";
const TOO_LONG = "Its conversation had become too long for the model.";
/** The shortest time between two copies of that text while it runs, in case its process is killed (ms). */
const KEEP_MS = 5000;

interface RecorderParts {
  file: SessionFile;
  /** What its meter has seen; undefined without a meter. */
  reading: MeterReading | undefined;
  /** See `AgentProgram`. */
  keepsSessionId: boolean | undefined;
  messages: Pick<MessageFeed, "packetUuid" | "noteCompacted">;
  gate: Pick<AccountGate, "pass" | "noteQuota">;
  onTurnEnd: () => void;
}

export class RunRecorder {
  readonly state: RunState;
  /** True when the program was started to resume a session, but has begun another one. */
  hasLostSession = false;
  /** The session to resume; only set for a program that keeps the id of a session. */
  private readonly resumed: string | undefined;
  private readonly isResumed: boolean;
  private readonly file: SessionFile;
  private readonly reading: MeterReading | undefined;
  private readonly subject: LogSubject;
  private readonly log: Journal;
  private readonly deps: Pick<RecorderParts, "gate" | "messages" | "onTurnEnd">;
  private readonly startedMs = performance.now();
  private model: string | null;
  /** When the session was last written (monotonic ms), and the agent's last text at that time. */
  private kept = {
    atMs: Number.NEGATIVE_INFINITY,
    text: undefined as string | undefined,
    isTold: false,
  };

  constructor(
    private readonly assignment: Assignment,
    private readonly session: SessionDocument,
    parts: RecorderParts,
  ) {
    const { file, keepsSessionId } = parts;
    this.isResumed = session.session_id !== null;
    this.resumed = keepsSessionId === true ? (session.session_id ?? undefined) : undefined;
    this.deps = parts;
    this.model = modelOf(assignment, session);
    const { stateDir, runDir, task } = assignment;
    this.state = newRunState(session.booked);
    this.file = file;
    this.reading = parts.reading;
    this.subject = {
      agent_name: session.agent,
      agent_type: session.kind,
      task_id: task.id,
      run: basename(runDir),
      ...assignment.briefing?.scope,
    };
    this.keepInRun(session);
    this.log = new Journal(join(stateDir, "logs", `${session.agent}.jsonl`), true);
  }

  /** Adds the facts of one line of the stream. @returns the facts as they count */
  take(line: string, given: readonly Fact[]): Fact[] {
    const createdAt = Math.floor(Date.now() / 1000);
    const facts: Fact[] = [];
    const { gate, messages, onTurnEnd } = this.deps;
    for (const one of given) {
      const fact = judgeFact(this.state, one);
      facts.push(fact);
      applyFact(this.state, fact);
      // The account is not at its limit.
      if (isAnswer(fact)) gate.pass();
      if (provesPacket(fact, messages.packetUuid)) delete this.session.untold;
      if (fact.fact === "quota") gate.noteQuota(fact);
      if (fact.fact === "compacted") messages.noteCompacted();
      if (fact.fact === "session") this.noteSession(fact.id, fact.model);
      const record = logRecordOf(this.subject, fact, line, createdAt);
      if (record !== undefined) this.log.append(JSON.stringify(record));
    }
    // The log comes first, because a reader of it may act at once, even by killing this process.
    this.keepSession();
    this.log.flush();
    if (facts.some(({ fact }) => fact === "turn_ended")) onTurnEnd();
    return facts;
  }

  /**
   * Called when the run has ended. Books its costs, and keeps what the next run needs.
   * @returns false when the costs could not be written
   */
  close(verdict: RunVerdict): boolean {
    const { state, session } = this;
    const outcome = verdict.next === "outcome" ? verdict.outcome : undefined;
    const bookedThen = this.bookedThen();
    addDenied(this.assignment.usage, state.denied);
    const isBooked = this.book(this.costRecord(outcome?.kind ?? "lost_session"));
    this.log.close();
    const isGone = outcome === undefined;
    const why = isGone ? "" : whyOf(outcome);
    if (verdict.next === "fresh_session" && verdict.isTooLong === true) {
      session.overflowed = true;
      session.hand_off = handOffOf(TOO_LONG, state.lastText) || session.hand_off;
    }
    const left: SessionDocument = {
      ...session,
      session_id: isGone ? null : (state.sessionId ?? session.session_id),
      booked: isGone ? NO_USAGE : bookedThen,
      was_refused: state.lastEnd?.fault === "auth",
      hand_off: isGone ? session.hand_off : handOffOf(why, state.lastText) || session.hand_off,
    };
    this.noteContinued(left);
    // The task is done. Another task may continue the session with the copy in the run's folder.
    if (outcome?.kind === "completed") {
      this.keepInRun(left);
      if (this.isHeld()) this.file.remove();
    } else this.write(left);
    return isBooked;
  }

  /** @returns false when the record could not be written */
  private book(record: CostRecord): boolean {
    // A run that did no work and used nothing, because the service was not reached, say, is no cost.
    if (!hasUsed(record) && record.outcome !== "completed") return true;
    if (record.outcome === "completed") this.assignment.booked?.push(record);
    return bookCost(this.assignment.stateDir, record);
  }

  private noteSession(id: string, model: string | undefined): void {
    if (model !== undefined) this.model = model;
    if (this.resumed !== undefined && this.resumed !== id) this.hasLostSession = true;
    if (this.hasLostSession) return;
    this.session.session_id = id;
    this.assignment.briefing?.note({ session_id: id });
  }

  /** Writes what the next run needs if this process is killed. */
  keepSession(): void {
    const { lastText, sessionId } = this.state;
    const isTold = this.session.untold !== true;
    const isKept = this.kept.text === lastText && this.kept.isTold === isTold;
    if (sessionId === undefined || this.hasLostSession || isKept) return;
    const nowMs = performance.now();
    // Write the id and the first text of a session without delay, and that it knows its task.
    const isFirst = (this.kept.text ?? "") === "" || this.kept.isTold !== isTold;
    if (!isFirst && nowMs - this.kept.atMs < KEEP_MS) return;
    this.kept = { atMs: nowMs, text: lastText, isTold };
    this.write({ ...this.session, hand_off: handOffOf(CUT_OFF, lastText) });
  }

  /** Writes nothing when another process has taken the task and its session. A full disk loses the session but does not fail the run. */
  private write(session: SessionDocument): void {
    this.keepInRun(session);
    try {
      if (this.isHeld()) this.file.write(session);
    } catch {
      // The next run begins a new session.
    }
  }

  /** For a task that continues another task's session: notes what is booked. A full disk loses the note but does not fail the run. */
  private noteContinued({ session_id: sessionId, booked }: SessionDocument): void {
    const { stateDir, task } = this.assignment;
    if (typeof task["session"] !== "string" || sessionId === null || !this.isHeld()) return;
    try {
      noteContinuedBooked(stateDir, sessionId, booked);
    } catch {
      // A retry by hand books this run once more.
    }
  }

  private keepInRun(session: SessionDocument): void {
    const { runDir, stateDir } = this.assignment;
    keepInRun(runDir, join(stateDir, "sessions"), session);
  }

  private isHeld(): boolean {
    const { claimFile } = this.assignment;
    return claimFile === "" || fs.existsSync(claimFile);
  }

  /**
   * Some programs report sums over their session. Then the costs are that sum less what was booked for the session, which includes the
   * costs of a killed run. Older versions report sums of only their own process. Then their single reports add up to more, and we use
   * those.
   */
  private used(): Usage {
    const reported = this.reported();
    // A meter sees each request. It knows no price if the settings have none.
    const metered = this.reading?.used(this.assignment.settings.prices);
    if (metered === undefined || this.reading?.isPassedBy(this.ownReport()) === true)
      return reported;
    return { ...metered, costUsdMicro: metered.costUsdMicro ?? reported.costUsdMicro };
  }

  private reported(): Usage {
    return addUsage(this.usedInTurns(), this.usedInOpenTurn());
  }

  /** What the program itself says that this run has used. Nothing in a resumed session, whose sums may hold reports of earlier runs that were lost. */
  ownReport(): Usage {
    return this.isResumed ? NO_USAGE : this.reported();
  }

  private usedInTurns(): Usage {
    const { keptUsage, partUsage, sessionUsage } = this.state;
    const sum = greaterOf(sessionUsage, keptUsage);
    if (sum === undefined) return partUsage;
    return greaterOf(subtractUsage(sum, this.bookedBefore()), partUsage);
  }

  /**
   * How much of the program's sum was booked. After a kill in the middle of a turn, the sum begins at zero again and may be less than what
   * was booked. The sum in the program's own file does not begin again.
   */
  private bookedBefore(): Usage {
    const { booked } = this.session;
    const { firstSessionUsage: first, keptUsage } = this.state;
    const isAnew =
      keptUsage === undefined && first !== undefined && tokensOf(first) < tokensOf(booked);
    return this.hasLostSession || isAnew ? NO_USAGE : booked;
  }

  /** The costs of the open turn. Their price comes from the settings, because the program reports one only at the end of a turn. */
  private usedInOpenTurn(): Usage {
    const { turnUsage } = this.state;
    // Without tokens there is no price. A price of 0 would hide that the program has reported none.
    if (tokensOf(turnUsage) === 0) return NO_USAGE;
    const { prices } = this.assignment.settings;
    return { ...turnUsage, costUsdMicro: priceOf(this.model, turnUsage, prices) ?? null };
  }

  /** What will be booked for the session, including this run. */
  bookedThen(): Usage {
    // In the program's own counting, from which the next run goes on.
    return addUsage(this.bookedBefore(), this.reported());
  }

  /** What the run has used so far. */
  costRecord(outcome: string): CostRecord {
    const { session, state, subject } = this;
    const used = this.used();
    return {
      at: Math.floor(Date.now() / 1000),
      task_id: subject.task_id,
      run: subject.run,
      lease: this.assignment.lease,
      ...compact({
        plan: planOf(this.assignment)?.name,
        group: this.assignment.task.group || undefined,
      }),
      agent: session.agent,
      kind: session.kind,
      account: session.account,
      model: this.model ?? this.reading?.model ?? null,
      session_id: state.sessionId ?? session.session_id,
      input_tokens: used.inputTokens,
      cached_input_tokens: used.cachedInputTokens,
      output_tokens: used.outputTokens,
      cost_usd_micro: used.costUsdMicro,
      turns: state.turns,
      duration_ms: Math.round(performance.now() - this.startedMs),
      outcome,
    };
  }
}

/** The reason that the next run is told. It does not get the question to a person. */
function whyOf(outcome: AttemptOutcome): string {
  if (outcome.kind === "deferred" && outcome.hold?.startsWith("budget-") === true)
    return "It was stopped, because its budget was used up. A person has allowed more.";
  return "message" in outcome ? outcome.message : "";
}

function handOffOf(why: string, said: string): string {
  return [why, said.slice(-HAND_OFF_MAX)].filter((text) => text !== "").join("\n\n");
}

/** The usage with more tokens; `a` when they are equal. */
function greaterOf<A extends Usage | undefined>(a: A, b: Usage | undefined): A | Usage {
  return b !== undefined && (a === undefined || tokensOf(b) > tokensOf(a)) ? b : a;
}

/** The model that the task or the settings name. The program may report a more exact name later. */
function modelOf({ settings, task }: Assignment, { agent }: SessionDocument): string | null {
  if (task.model !== undefined) return task.model;
  return settings.agents.find((one) => one.name === agent)?.model ?? null;
}
