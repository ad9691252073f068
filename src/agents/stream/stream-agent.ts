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
import { CostWatch } from "../budget/cost-watch.ts";
import { RunBudget } from "../budget/run-budget.ts";
import { type Metered, type MeterSight, openMeter } from "../metered-run.ts";

import { lastWords, makeRunDir, type ProgramEnd, runProgram } from "../program.ts";
import type { AccountGate } from "./account-gate.ts";
import { AgentAlerts } from "./agent-alerts.ts";
import type { AgentProgram } from "./agent-program.ts";
import { runBesidePerson } from "./beside-person.ts";
import { enterAccount } from "./choose-account.ts";
import { beginWith } from "./continued.ts";
import { forOthers, pausedOutcome } from "./for-others.ts";
import { judgeEnd } from "./judge-end.ts";
import { MessageFeed } from "./message-feed.ts";
import { firstWords } from "./packet.ts";
import type { RunFacts, RunVerdict } from "./run-outcome.ts";
import { RunRecorder } from "./run-recorder.ts";
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
const NEXT_RUN: RunVerdict = { next: "outcome", outcome: GO_ON };

/** What one program of a run works with. */
interface OnceParts {
  file: SessionFile;
  gate: AccountGate;
  budget: RunBudget;
  /** Called before the program starts: now its meter can tell what it sees. */
  onReady: (sight: MeterSight) => void;
}

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
      const { was_refused, silent_runs } = session;
      const first = await this.runOnce(assignment, session, file, { gate, budget });
      if (first.next === "outcome") return first.outcome;
      // Begin a new session, which is told what the old one did. It resumes nothing, so this happens only once.
      // What the runs before it have met still counts: a program that keeps no session of a bad turn would go on for ever.
      const { failing, hand_off, overflowed } = session;
      const anew = newSession({ ...of, account: gate.account });
      const counts = compact({ failing, overflowed, silent_runs });
      const again = { ...anew, hand_off, was_refused, ...counts };
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
    const settings = this.settingsFor(assignment, gate.account);
    const hindrance = makeRunDir(assignment.runDir);
    if (hindrance !== undefined) return { next: "outcome", outcome: hindrance };
    let seen: MeterSight | undefined;
    const metered = await openMeter(assignment, settings, () => seen);
    if ("refusal" in metered) return { next: "outcome", outcome: metered.refusal };
    try {
      return await this.runMetered(assignment, session, metered, {
        file,
        gate,
        budget,
        onReady: (sight) => {
          seen = sight;
        },
      });
    } finally {
      metered.close();
    }
  }

  private async runMetered(
    assignment: Assignment,
    session: SessionDocument,
    metered: Metered,
    { file, gate, budget, onReady }: OnceParts,
  ): Promise<RunVerdict> {
    const { reading, settings, through } = metered;
    const sessionId = session.session_id ?? undefined;
    const eventsLog = join(assignment.runDir, "events.jsonl");
    const stderrLog = join(assignment.runDir, "stderr.log");
    const stderrFrom = sizeOf(stderrLog);
    const messages = newFeed(assignment, eventsLog);
    const recorder = new RunRecorder(assignment, session, {
      file,
      gate,
      messages,
      reading,
      keepsSessionId: this.program.keepsSessionId,
      onTurnEnd: () => costs.turnEnded(),
    });
    const stop = StopSignal.after(assignment.stop);
    const costs = new CostWatch(assignment, {
      budget,
      costs: recorder,
      reading,
      owner: ownerOf(assignment.lease),
      sessionKey: sessionKey(assignment),
      stop: (reason) => watch.stop(reason),
    });
    const packet = this.packetFor(assignment, session, settings, messages);
    const begun = { settings, packet, sessionId, cwd: session.cwd, through };
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
    onReady({ costs, gate, onFacts: (facts) => watch.takeFromMeter(facts) });
    let end: ProgramEnd;
    try {
      end = await runProgram(
        { ...assignment, stop },
        {
          argv: this.program.argv(begun),
          stdoutLog: eventsLog,
          stderrLog,
          limitMs: timeoutOf(assignment, settings) || WALL_MS,
          // Its tools may have left its group. A session may only be resumed when none of its processes is left.
          endsTree: !keepsBackground(this, assignment),
          ...this.environmentFor(settings),
          changeEnvironment: metered.enter,
          beforeStop: () => watch.interrupt(),
          onExit: () => watch.noteExit(),
          onStarted: () => {
            watch.start();
            costs.start();
          },
          ...(input.kind === "none"
            ? {}
            : { onStdin: (stdin: Writable) => watch.open(stdin, input, packet) }),
        },
      );
    } finally {
      assignment.stop.onStop(undefined);
      costs.end();
      metered.close();
      watch.end();
    }
    this.tellOfEnd(assignment, watch, reading?.explainGap(recorder.ownReport()));
    const judged = judgeEnd(end, recorder, {
      ownStop: watch.ownStop,
      halt: costs.halt,
      refused: reading?.refused,
      isSilentAtLimit: this.program.isSilentAtLimit,
      facts: this.factsOf(session, sessionId, watch),
      lastWords: lastWords(stderrLog, stderrFrom),
    });
    session.has_news = isGoodOrCut(judged, watch) && messages.hasUnread();
    noteSilence(session, watch.ownStop);
    const verdict = session.has_news ? NEXT_RUN : this.giveUpSame(assignment, session, judged);
    costs.close(recorder.close(verdict));
    return await gate.noteEnd(recorder.state, verdict);
  }

  private tellOfEnd(
    { stateDir, task }: Assignment,
    { ownStop }: StreamWatch,
    gap: string | undefined,
  ): void {
    if (ownStop === "lingering") this.alerts.noteLingering(stateDir, task.id);
    if (gap !== undefined) this.alerts.noteUnmetered(stateDir, task.id, gap);
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
    session.has_news = false;
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
}

function noteSilence(session: SessionDocument, ownStop: OwnStop | undefined): void {
  if (ownStop === "idle") session.silent_runs = (session.silent_runs ?? 0) + 1;
  else delete session.silent_runs;
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
