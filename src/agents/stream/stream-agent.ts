/**
 * A coding agent: a program of the user's that tells what it does in lines of JSON. One process for each run; its output goes
 * straight into `events.jsonl` of the run, and is read from there. What is special about a kind is behind `AgentProgram`.
 */
import fs from "node:fs";
import { join, resolve } from "node:path";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { Agent, type Assignment, StopSignal, timeoutOf } from "../agent.ts";
import { lastWords, type ProgramEnd, runProgram } from "../program.ts";
import { AccountGate } from "./account-gate.ts";
import type { ReadLine } from "./facts.ts";
import { packetOf, resumePacketOf } from "./packet.ts";
import { judgeRun, type RunVerdict } from "./run-outcome.ts";
import { RunRecorder } from "./run-recorder.ts";
import { newSession, type SessionDocument, SessionFile } from "./session-file.ts";
import { type OwnStop, StreamWatch } from "./stream-watch.ts";

/** How one kind of coding agent is started and understood. */
export interface AgentProgram {
  newReader(): ReadLine;
  /** @param sessionId the session that is resumed; undefined: a new one */
  argv(settings: AgentSettings, packet: string, sessionId: string | undefined): string[];
  /** The line that carries a message of ours on standard input; undefined where the packet is an argument. */
  frame: ((uuid: string, text: string) => string) | undefined;
  /** Variables that the program must not inherit, as those of another agent's session. */
  isForeignVariable(name: string): boolean;
}

export class StreamAgent extends Agent {
  private readonly program: AgentProgram;

  constructor(settings: AgentSettings, program: AgentProgram) {
    super(settings);
    this.program = program;
  }

  override async run(assignment: Assignment): Promise<AttemptOutcome> {
    const file = new SessionFile(join(assignment.stateDir, "sessions"), sessionKey(assignment));
    const cwd = resolve(
      assignment.stateDir,
      "..",
      assignment.task.metadata?.worktree ?? assignment.task.cwd ?? ".",
    );
    const fresh = newSession({
      task_id: assignment.task.id,
      agent: this.name,
      kind: this.settings.kind,
      account: this.settings.account ?? "default",
      cwd,
    });
    const session = file.read(this.name, cwd) ?? fresh;
    const gate = new AccountGate(session.account, ownerOf(assignment.lease));
    const refusal = await gate.enter();
    if (refusal !== undefined) return refusal;
    try {
      const first = await this.runOnce(assignment, session, file, gate);
      if (first.next === "outcome") return first.outcome;
      // A new session, which is told what the old one did. It resumes nothing, so this ends.
      const again = { ...fresh, hand_off: session.hand_off };
      const second = await this.runOnce(assignment, again, file, gate);
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
    gate: AccountGate,
  ): Promise<RunVerdict> {
    const { runDir, settings } = assignment;
    const sessionId = session.session_id ?? undefined;
    const eventsLog = join(runDir, "events.jsonl");
    const stderrLog = join(runDir, "stderr.log");
    const limitMs = timeoutOf(assignment, this.settings);
    const recorder = new RunRecorder(assignment, session, file, () => gate.pass());
    const stop = new StopSignal();
    assignment.stop.onStop((reason) => stop.stop(reason));
    const packet =
      sessionId === undefined ? packetOf(assignment, session) : resumePacketOf(session);
    const watch = new StreamWatch({
      eventsLog,
      from: sizeOf(eventsLog),
      read: this.program.newReader(),
      recorder,
      settings: this.settings,
      stop: (reason) => stop.stop(reason),
    });
    let end: ProgramEnd;
    try {
      const { frame } = this.program;
      end = await runProgram(
        { ...assignment, stop },
        {
          argv: this.program.argv(this.settings, packet, sessionId),
          stdoutLog: eventsLog,
          stderrLog,
          limitMs,
          moreEnvironment: () => ({ ...this.settings.env }),
          withoutEnvironment: (name) =>
            this.program.isForeignVariable(name) && this.settings.env?.[name] === undefined,
          ...(frame === undefined
            ? { onStarted: () => watch.start() }
            : {
                onStdin: (stdin) => watch.start(stdin, frame, packet),
              }),
        },
      );
    } finally {
      assignment.stop.onStop(undefined);
      watch.end();
    }
    const verdict = this.judge(end, watch.ownStop, recorder, {
      isResumed: sessionId !== undefined,
      wasRefused: session.was_refused,
      lastWords: lastWords(stderrLog),
      limitMs: this.settings.idle_ms ?? settings.timeout_ms,
    });
    recorder.close(verdict);
    return await gate.noteEnd(recorder.state, verdict);
  }

  private judge(
    end: ProgramEnd,
    ownStop: OwnStop | undefined,
    recorder: RunRecorder,
    facts: { isResumed: boolean; wasRefused: boolean; lastWords: string; limitMs: number },
  ): RunVerdict {
    const { outcome } = end;
    // It had nothing more to do and did not leave: what it came to stands.
    const isDone = ownStop === "lingering" || ownStop === "background";
    const isJudged = outcome === undefined || isDone || isSignal(outcome);
    if (!isJudged) return { next: "outcome", outcome };
    const exitCode = isDone ? 0 : end.outcome === undefined ? end.exitCode : null;
    const signal = !isDone && outcome?.kind === "failed" ? outcome.signal : null;
    return judgeRun(
      recorder.state,
      { exitCode, signal, lastWords: facts.lastWords },
      { isResumed: facts.isResumed, wasRefused: facts.wasRefused, nowMs: Date.now() },
    );
  }
}

function isSignal(outcome: AttemptOutcome): boolean {
  return outcome.kind === "failed" && outcome.failure === "signal";
}

function sessionKey({ task, lease, node }: Assignment): string {
  const submission = lease.slice(0, lease.indexOf("."));
  return `${task.id}@${submission}${node === undefined ? "" : `.${node.phase.toLowerCase()}`}`;
}

/** The owner in a lease `<submission>.<attempt>.<owner>`. */
function ownerOf(lease: string): string {
  return lease.slice(lease.indexOf(".", lease.indexOf(".") + 1) + 1);
}

function sizeOf(path: string): number {
  return fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
