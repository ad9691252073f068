/** Keeps what a run says: its state, its session, the agent's log, and what it cost. */
import { basename, join } from "node:path";
import { Journal } from "../../journal/journal.ts";
import type { Assignment } from "../agent.ts";
import type { CostRecord } from "../cost-records.ts";
import { type LogSubject, logRecordOf } from "./agent-log.ts";
import type { Fact, Usage } from "./facts.ts";
import type { RunVerdict } from "./run-outcome.ts";
import { applyFact, newRunState, type RunState } from "./run-state.ts";
import type { SessionDocument, SessionFile } from "./session-file.ts";

/** The end of what it said, for a run that follows (characters). */
const HAND_OFF_MAX = 4000;

export class RunRecorder {
  readonly state: RunState = newRunState();
  private readonly session: SessionDocument;
  private readonly file: SessionFile;
  private readonly subject: LogSubject;
  private readonly log: Journal;
  private readonly costs: Journal;
  private readonly onAnswer: () => void;
  private model: string | null;

  /** @param onAnswer called when the model has answered: the account is not at its limit */
  constructor(
    assignment: Assignment,
    session: SessionDocument,
    file: SessionFile,
    onAnswer: () => void,
  ) {
    this.onAnswer = onAnswer;
    this.model = modelOf(assignment, session);
    const { stateDir, runDir, task } = assignment;
    this.session = session;
    this.file = file;
    this.subject = {
      agent_name: session.agent,
      agent_type: session.kind,
      task_id: task.id,
      run: basename(runDir),
    };
    this.log = new Journal(join(stateDir, "logs", `${session.agent}.jsonl`), true);
    this.costs = new Journal(join(stateDir, "analytics", "costs.jsonl"), true);
  }

  /** Takes what one line of the stream says. */
  take(line: string, facts: readonly Fact[]): void {
    const createdAt = Math.floor(Date.now() / 1000);
    for (const fact of facts) {
      applyFact(this.state, fact);
      if (isAnswer(fact)) this.onAnswer();
      if (fact.fact === "session") this.noteSession(fact.id, fact.model);
      const record = logRecordOf(this.subject, fact, line, createdAt);
      if (record !== undefined) this.log.append(JSON.stringify(record));
    }
    this.log.flush();
  }

  /** The run has ended: books what it used, and leaves what the next one goes on with. */
  close(verdict: RunVerdict): void {
    const { state, session } = this;
    const outcome = verdict.next === "outcome" ? verdict.outcome : undefined;
    const used = this.used();
    if (used.inputTokens + used.outputTokens > 0 || used.costUsdMicro !== null) {
      this.costs.append(JSON.stringify(this.costRecord(used, outcome?.kind ?? "lost_session")));
      this.costs.flush();
    }
    this.costs.close();
    this.log.close();
    if (outcome?.kind === "completed") {
      this.file.remove();
      return;
    }
    const said = state.lastText.slice(-HAND_OFF_MAX);
    const why = outcome === undefined || !("message" in outcome) ? "" : outcome.message;
    this.file.write({
      ...session,
      session_id: outcome === undefined ? null : (state.sessionId ?? session.session_id),
      booked: state.sessionUsage ?? session.booked,
      was_refused: state.lastEnd?.fault === "auth",
      hand_off: [why, said].filter((text) => text !== "").join("\n\n") || session.hand_off,
    });
  }

  private noteSession(id: string, model: string | undefined): void {
    if (model !== undefined) this.model = model;
    if (this.session.session_id === id) return;
    this.session.session_id = id;
    this.file.write(this.session);
  }

  /** Programs that tell sums over their session: the difference to what was booked of it. */
  private used(): Usage {
    const { partUsage, sessionUsage } = this.state;
    if (sessionUsage === undefined || partUsage.inputTokens + partUsage.outputTokens > 0)
      return partUsage;
    const { booked } = this.session;
    const more = (now: number, before: number): number => Math.max(0, now - before);
    return {
      inputTokens: more(sessionUsage.inputTokens, booked.inputTokens),
      cachedInputTokens: more(sessionUsage.cachedInputTokens, booked.cachedInputTokens),
      outputTokens: more(sessionUsage.outputTokens, booked.outputTokens),
      costUsdMicro:
        sessionUsage.costUsdMicro === null
          ? null
          : more(sessionUsage.costUsdMicro, booked.costUsdMicro ?? 0),
    };
  }

  private costRecord(used: Usage, outcome: string): CostRecord {
    const { session, state, subject } = this;
    return {
      at: Math.floor(Date.now() / 1000),
      task_id: subject.task_id,
      run: subject.run,
      agent: session.agent,
      kind: session.kind,
      account: session.account,
      model: this.model,
      session_id: state.sessionId ?? session.session_id,
      input_tokens: used.inputTokens,
      cached_input_tokens: used.cachedInputTokens,
      output_tokens: used.outputTokens,
      cost_usd_micro: used.costUsdMicro,
      outcome,
    };
  }
}

/** The service has answered with the model's words or wishes. What the program says by itself is no answer. */
function isAnswer(fact: Fact): boolean {
  if (fact.fact === "turn_ended") return fact.end.fault === undefined;
  return fact.fact === "tool_started" || fact.fact === "thought";
}

/** The model that the settings name; the program may tell a more exact name later. */
function modelOf({ settings }: Assignment, { agent }: SessionDocument): string | null {
  return settings.agents.find((one) => one.name === agent)?.model ?? null;
}
