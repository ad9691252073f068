/**
 * A coding agent: a program of the user that reports its work in lines of JSON. Each run is one process. Its output goes straight into
 * `events.jsonl` of the run, and is read from there. Each kind implements `AgentProgram`.
 */
import fs from "node:fs";
import { join, sep } from "node:path";
import type { Writable } from "node:stream";
import { compact } from "../../core/compact.ts";
import { type AttemptOutcome, failed, retryPolicyOf } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { stateTree } from "../../core/state-tree.ts";
import type { Task } from "../../core/task.ts";
import { appendRegularText, statOf } from "../../host/regular-file.ts";
import { accountsOf, withAccount } from "../accounts/account-settings.ts";
import { Agent, type Assignment, StopSignal, timeoutOf, workDirOf } from "../agent.ts";
import { keepsBackground } from "../background.ts";
import { RunBudget } from "../budget/run-budget.ts";
import { RunMeter } from "../budget/run-meter.ts";
import { lastWords, makeRunDir, type ProgramEnd, runProgram } from "../program.ts";
import type { AccountGate } from "./account-gate.ts";
import { AgentAlerts } from "./agent-alerts.ts";
import type { AgentProgram } from "./agent-program.ts";
import { runBesidePerson } from "./beside-person.ts";
import { enterAccount } from "./choose-account.ts";
import { beginWith } from "./continued.ts";
import type { Fact } from "./facts.ts";
import { forOthers, pausedOutcome } from "./for-others.ts";
import { MessageFeed } from "./message-feed.ts";
import { firstWords } from "./packet.ts";
import { judgeRun, type RunFacts, type RunVerdict } from "./run-outcome.ts";
import { RunRecorder } from "./run-recorder.ts";
import { applyFact, type RunState } from "./run-state.ts";
import { countFailure } from "./same-failure.ts";
import { newSession, type SessionDocument, SessionFile, sessionOfRun } from "./session-file.ts";
import { SessionProof } from "./session-proof.ts";
import { SideTail } from "./side-tail.ts";
import { type OwnStop, StreamWatch } from "./stream-watch.ts";
import { TaskMessages } from "./task-messages.ts";

/** Longest run when neither the task nor the agent nor the settings have a limit (ms). */
const WALL_MS = 4 * 60 * 60_000;

/** Its work is done, but a message is unread. So the task runs once more, which uses up no attempt. */
const GO_ON: AttemptOutcome = { kind: "released", message: "a message for it has come" };
/** How many silent runs in a row of one task may be for the quota. A program that always hangs must not go on for ever. */
const SILENT_MAX = 3;
const NEXT_RUN: RunVerdict = { next: "outcome", outcome: GO_ON };

export class StreamAgent extends Agent {
  private readonly alerts: AgentAlerts;

  constructor(
    settings: AgentSettings,
    private readonly program: AgentProgram,
  ) {
    super(settings);
    this.alerts = new AgentAlerts(settings);
  }

  override run(assignment: Assignment): Promise<AttemptOutcome> {
    return runBesidePerson(assignment, sessionKey(assignment), () => this.runAlone(assignment));
  }

  private async runAlone(assignment: Assignment): Promise<AttemptOutcome> {
    const outcome = await this.runInSession(assignment);
    await assignment.briefing?.flush();
    await this.alerts.note(assignment.stateDir, assignment.task.id, outcome);
    reportLastWords(assignment, outcome);
    return forOthers(assignment, this.name, sessionKey(assignment), outcome);
  }

  /** If a message came while the checks ran, the task runs once more. The end of the run has removed the session, so this restores it. */
  override reopen(assignment: Assignment): AttemptOutcome | undefined {
    const { stateDir, task } = assignment;
    if (new TaskMessages(stateDir, task.id, false).unread().length === 0) return undefined;
    this.restoreSession(assignment, true);
    return GO_ON;
  }

  override keepSession(assignment: Assignment): void {
    this.restoreSession(assignment, false);
  }

  /** Why a silence counts as a used up quota; undefined: it does not. Some programs wait in silence for as long as the service told them to. */
  private explainSilence(
    { lastStatus }: Pick<RunState, "lastStatus">,
    { silentRuns = 0, wasInTurn }: RunFacts,
  ): string | undefined {
    if (lastStatus === 429) return "the service answered 429, and the program was silent since";
    const isAsked = wasInTurn === true && this.program.isSilentAtLimit === true;
    if (!isAsked || silentRuns >= SILENT_MAX) return undefined;
    return `it was silent, and no tool ran: probably the quota is used up (${silentRuns + 1} of ${SILENT_MAX} runs in a row that count so)`;
  }

  /** Writes the session back that the end of the run has removed. */
  private restoreSession(assignment: Assignment, hasNews: boolean): void {
    const { stateDir, runDir, claimFile } = assignment;
    const session = sessionOfRun(runDir);
    const file = new SessionFile(stateTree(stateDir).sessions, sessionKey(assignment));
    try {
      // If the claim file is gone, another process has the task and its session.
      if (session !== undefined && fs.existsSync(claimFile))
        file.write({ ...session, has_news: hasNews });
    } catch {
      // The disk is full. The task goes on in a new session.
    }
  }

  private async runInSession(assignment: Assignment): Promise<AttemptOutcome> {
    const accounts = accountsOf(this.settings);
    const file = new SessionFile(stateTree(assignment.stateDir).sessions, sessionKey(assignment));
    const cwd = realpath(workDirOf(assignment));
    const of = { task_id: assignment.task.id, agent: this.name, kind: this.settings.kind, cwd };
    const fresh = newSession({ ...of, account: accounts[0] ?? "default" });
    const budget = new RunBudget(assignment, this.settings);
    // Do this before reading the session's document, because it may change that.
    await budget.bookLeft();
    const kept = file.read(fresh, accounts);
    const { stateDir, task } = assignment;
    const begun = kept === fresh ? beginWith(stateDir, task["session"], fresh, accounts) : kept;
    if (begun !== undefined && !("v" in begun)) return begun;
    const refusal =
      pausedOutcome(stateDir, this.name) ??
      explainReach(this.program, this.settingsOf(task), assignment, cwd) ??
      budget.enter();
    if (refusal !== undefined) return refusal;
    const choice = {
      accounts,
      all: assignment.settings.accounts,
      owner: ownerOf(assignment.lease),
    };
    const entered = await enterAccount(choice, begun ?? fresh, fresh);
    if (entered.gate === undefined) return entered.refusal;
    const { gate, session } = entered;
    try {
      const first = await this.runOnce(assignment, session, file, { gate, budget });
      if (first.next === "outcome") return first.outcome;
      // Begin a new session, which is told what the old one did. It resumes nothing, so this happens only once.
      const { hand_off, overflowed } = session;
      const anew = newSession({ ...of, account: gate.account });
      const again = { ...anew, hand_off, ...compact({ overflowed }) };
      const second = await this.runOnce(assignment, again, file, { gate, budget });
      return second.next === "outcome"
        ? second.outcome
        : { kind: "released", message: "its session is gone" };
    } finally {
      await gate.leave();
    }
  }

  private async runOnce(
    assignment: Assignment,
    session: SessionDocument,
    file: SessionFile,
    { gate, budget }: { gate: AccountGate; budget: RunBudget },
  ): Promise<RunVerdict> {
    const { runDir, stateDir } = assignment;
    const settings = this.settingsFor(assignment, gate.account);
    const hindrance = makeRunDir(runDir);
    if (hindrance !== undefined) return { next: "outcome", outcome: hindrance };
    const sessionId = session.session_id ?? undefined;
    const eventsLog = join(runDir, "events.jsonl");
    const stderrLog = join(runDir, "stderr.log");
    const stderrFrom = sizeOf(stderrLog);
    const limitMs = timeoutOf(assignment, settings) || WALL_MS;
    const messages = newFeed(assignment, eventsLog);
    const recorder = new RunRecorder(assignment, session, {
      file,
      keepsSessionId: this.program.keepsSessionId === true,
      packetUuid: messages.packetUuid,
      onAnswer: () => gate.pass(),
      onQuota: (quota) => gate.noteQuota(quota),
      onTurnEnd: () => meter.turnEnded(),
      onCompacted: () => messages.noteCompacted(),
    });
    const stop = new StopSignal();
    const meter = meterOf(assignment, budget, recorder, stop);
    assignment.stop.onStop((reason) => stop.stop(reason));
    const packet = this.packetFor(assignment, session, settings, messages);
    session.has_news = false;
    const begun = { settings, packet, sessionId, cwd: session.cwd };
    const input = this.program.input(begun);
    const watch = new StreamWatch({
      eventsLog,
      from: sizeOf(eventsLog),
      read: input.kind === "dialogue" ? input.dialogue.read : this.program.newReader(),
      recorder,
      settings,
      side: this.sideOf(settings, sessionId, recorder),
      messages,
      stop: (reason) => stop.stop(reason),
    });
    let end: ProgramEnd;
    try {
      end = await runProgram(
        { ...assignment, stop },
        {
          argv: this.program.argv(begun),
          stdoutLog: eventsLog,
          stderrLog,
          limitMs,
          // Its tools may have left its group. A session may only be resumed when none of its processes is left.
          endsTree: !keepsBackground(this, assignment),
          ...this.environmentFor(settings),
          beforeStop: () => watch.interrupt(),
          onExit: () => watch.noteExit(),
          onStarted: () => {
            watch.start();
            meter.start();
          },
          ...(input.kind === "none"
            ? {}
            : { onStdin: (stdin: Writable) => watch.open(stdin, input, packet) }),
        },
      );
    } finally {
      assignment.stop.onStop(undefined);
      meter.end();
      watch.end();
    }
    if (watch.ownStop === "lingering") this.alerts.noteLingering(stateDir, assignment.task.id);
    const judged = this.judge(
      end,
      { ownStop: watch.ownStop, halt: meter.halt },
      recorder,
      this.factsOf(session, sessionId, watch),
      lastWords(stderrLog, stderrFrom),
    );
    noteSilence(session, watch.ownStop);
    session.has_news = isGoodOrCut(judged, watch) && messages.hasUnread();
    const verdict = session.has_news ? NEXT_RUN : this.giveUpSame(assignment, session, judged);
    if (recorder.close(verdict)) meter.remove();
    return await gate.noteEnd(recorder.state, verdict);
  }

  private factsOf(
    session: SessionDocument,
    resumed: string | undefined,
    { ownStop, wasInTurn }: StreamWatch,
  ): RunFacts {
    return {
      isResumed: resumed !== undefined,
      wasRefused: session.was_refused,
      hasOverflowed: session.overflowed === true,
      silentRuns: session.silent_runs ?? 0,
      wasInTurn,
      nowMs: Date.now(),
      faultOfLastWords: (words) => this.program.faultOfLastWords(words),
      hasStoppedBackground: ownStop === "background",
    };
  }

  /** Makes the packet of a run. The task is in it unless the session is proven to know the task. */
  private packetFor(
    assignment: Assignment,
    session: SessionDocument,
    settings: AgentSettings,
    messages: MessageFeed,
  ): string {
    const { program } = this;
    const sessionId = session.session_id ?? undefined;
    const record = sessionId === undefined ? undefined : program.record?.find(settings, sessionId);
    const proof = new SessionProof(assignment.stateDir, program, record);
    const isTold = proof.isTold(session);
    const mayAsk = isTold && program.knowsMessages === true;
    const packet = messages.makePacket(
      proof,
      (unread) => firstWords(assignment, session, isTold, unread),
      mayAsk,
    );
    if (isTold) return packet;
    session.untold = true;
    session.offer = messages.offerOfPacket(packet);
    return packet;
  }

  private giveUpSame(
    { attempt, settings, stateDir, task }: Assignment,
    session: SessionDocument,
    verdict: RunVerdict,
  ): RunVerdict {
    if (verdict.next !== "outcome") return verdict;
    const isLast = attempt >= retryPolicyOf(settings, task).maxAttempts;
    const outcome = countFailure(session, verdict.outcome, isLast);
    if (outcome !== verdict.outcome && outcome.kind === "failed")
      this.alerts.noteGivenUp(stateDir, task.id, outcome);
    return { next: "outcome", outcome };
  }

  /** With what the task sets in place of its agent. */
  private settingsOf({ model, effort, permissions }: Task): AgentSettings {
    return { ...this.settings, ...compact({ model, effort, permissions }) };
  }

  private settingsFor({ dropDir, settings, task }: Assignment, account: string): AgentSettings {
    const own = withAccount(this.settingsOf(task), account, settings.accounts);
    return dropDir === undefined ? own : (this.program.withWritable?.(own, dropDir) ?? own);
  }

  private environmentFor({ env }: AgentSettings) {
    return {
      moreEnvironment: () => ({ ...env }),
      withoutEnvironment: (name: string) =>
        this.program.isForeignVariable(name) && env?.[name] === undefined,
    };
  }

  private sideOf(
    settings: AgentSettings,
    sessionId: string | undefined,
    recorder: RunRecorder,
  ): SideTail | undefined {
    const { sideStream } = this.program;
    if (sideStream === undefined) return undefined;
    return new SideTail(sideStream, settings, sessionId, (line, facts) =>
      recorder.take(line, facts),
    );
  }

  private judge(
    end: ProgramEnd,
    { ownStop, halt }: { ownStop: OwnStop | undefined; halt: AttemptOutcome | undefined },
    recorder: RunRecorder,
    facts: RunFacts,
    words: string,
  ): RunVerdict {
    const { outcome } = end;
    const silent = ownStop === "idle" ? this.explainSilence(recorder.state, facts) : undefined;
    const isQuota = silent !== undefined;
    if (isQuota) applyFact(recorder.state, limitReached(silent));
    if (halt !== undefined && outcome?.kind === "released" && outcome.message === "budget")
      return { next: "outcome", outcome: halt };
    if (recorder.hasLostSession) return { next: "fresh_session" };
    // The program had finished its work but did not exit. The outcome of its work counts.
    const isDone = ownStop === "lingering" || ownStop === "background";
    const isJudged = outcome === undefined || isDone || isSignal(outcome) || isQuota;
    if (!isJudged) return { next: "outcome", outcome };
    const exitCode = isDone ? 0 : end.outcome === undefined ? end.exitCode : null;
    const signal = !isDone && outcome?.kind === "failed" ? outcome.signal : null;
    return judgeRun(recorder.state, { exitCode, signal, lastWords: words }, facts);
  }
}

function noteSilence(session: SessionDocument, ownStop: OwnStop | undefined): void {
  if (ownStop === "idle") session.silent_runs = (session.silent_runs ?? 0) + 1;
  else delete session.silent_runs;
}

function limitReached(text: string): Fact {
  return {
    fact: "turn_ended",
    end: { fault: "limit", text, answers: undefined, denied: [] },
  };
}

function meterOf(
  assignment: Assignment,
  budget: RunBudget,
  costs: RunRecorder,
  stop: StopSignal,
): RunMeter {
  return new RunMeter(assignment, {
    budget,
    costs,
    owner: ownerOf(assignment.lease),
    sessionKey: sessionKey(assignment),
    stop: () => stop.stop("budget"),
  });
}

/** Copies a node's output to `stdout.log`, because its result is searched there, and this program's stream goes elsewhere. */
function reportLastWords({ node, runDir }: Assignment, outcome: AttemptOutcome): void {
  if (node === undefined || outcome.kind !== "completed" || typeof outcome.output !== "string")
    return;
  appendRegularText(join(runDir, "stdout.log"), `${outcome.output}\n`);
}

/** A sandboxed agent that can write to the state tree could forge its own results, so it does not start. */
function explainReach(
  program: AgentProgram,
  settings: AgentSettings,
  { stateDir }: Assignment,
  cwd: string,
): AttemptOutcome | undefined {
  const folders = program.writableFolders(settings);
  if (folders.length === 0) return undefined;
  const state = fs.realpathSync(stateDir);
  for (const folder of [cwd, ...folders]) {
    const real = realpath(folder);
    if (state !== real && !state.startsWith(real.endsWith(sep) ? real : real + sep)) continue;
    return failed(
      "config",
      "ErrInvalidConfig",
      `the sandbox of ${settings.name} can write to ${folder}, which holds the state tree ${stateDir}: give the task a cwd or worktree elsewhere, or keep the state tree elsewhere`,
      { canRetry: false },
    );
  }
  return undefined;
}

function realpath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return path;
  }
}

function newFeed(
  { stateDir, task, settings, briefing }: Assignment,
  eventsLog: string,
): MessageFeed {
  const isDurable = settings.durability === "power";
  const from = sizeOf(eventsLog);
  return new MessageFeed({ stateDir, id: task.id, isDurable, eventsLog, from, briefing });
}

function isCompleted(verdict: RunVerdict): boolean {
  return verdict.next === "outcome" && verdict.outcome.kind === "completed";
}

/** Whether one more run may follow for a message. A program that ended when its turn was cut for a message gets it in that run. */
function isGoodOrCut(verdict: RunVerdict, { hasCut }: StreamWatch): boolean {
  if (isCompleted(verdict)) return true;
  if (!hasCut || verdict.next !== "outcome") return false;
  return verdict.outcome.kind === "failed" && verdict.outcome.failure === "interrupted";
}

function isSignal(outcome: AttemptOutcome): boolean {
  return outcome.kind === "failed" && outcome.failure === "signal";
}

function sessionKey({ task, lease, node }: Pick<Assignment, "task" | "lease" | "node">): string {
  const submission = lease.slice(0, lease.indexOf("."));
  return `${task.id}@${submission}${node === undefined ? "" : `.${node.phase.toLowerCase()}`}`;
}

/** The owner in a lease `<submission>.<attempt>.<owner>`. */
function ownerOf(lease: string): string {
  return lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
}

function sizeOf(path: string): number {
  return statOf(path)?.size ?? 0;
}
