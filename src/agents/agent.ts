/** The interface of everything that runs a task. */
import { resolve } from "node:path";
import { messageOf } from "../core/errors.ts";
import { type AttemptOutcome, failed } from "../core/outcome.ts";
import type { RunUsage } from "../core/run-usage.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import type { Task } from "../core/task.ts";
import type { PersonWatch } from "./attached.ts";
import type { Briefing } from "./briefing.ts";
import type { CostRecord } from "./cost-records.ts";
import type { MakeMeter } from "./meter.ts";
import type { RunLimiter } from "./run-limiter.ts";
import type { RunPlace, Walls } from "./walls.ts";

/** Why a running attempt is stopped from outside. */
export type StopReason =
  | "timeout"
  | "fenced"
  | "stop"
  | "cancel"
  | "requeue"
  /** The next run goes on, and first gets a message. */
  | "interrupt"
  /** A coding agent was silent for too long, or did not exit after its work. */
  | "idle"
  | "lingering"
  | "background"
  /** A budget is used up. */
  | "budget"
  /** Its meter has seen that the quota is used up. */
  | "quota"
  /** The program began a new session instead of resuming the old one. */
  | "lost_session";

/** Asks an attempt to stop. It is like an AbortSignal, which would cost more than the rest of a small task. */
export class StopSignal {
  reason: StopReason | undefined;
  private listener: ((reason: StopReason) => void) | undefined;

  /** A signal that stops with another one, and may also stop before it. */
  static after(other: StopSignal): StopSignal {
    const own = new StopSignal();
    other.onStop((reason) => own.stop(reason));
    return own;
  }

  /** The first reason counts. */
  stop(reason: StopReason): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.listener?.(reason);
  }

  /** The listener is called once; immediately if `stop` was called before. There is one listener at a time. */
  onStop(listener: ((reason: StopReason) => void) | undefined): void {
    this.listener = listener;
    if (this.reason !== undefined) listener?.(this.reason);
  }
}

/** The phase of a node's run for which an agent is called. */
export interface NodePhase {
  phase: string;
  /** The path of the packet for the agent. The file exists. */
  packetFile: string;
  /** Size of stdout.log when the phase began (bytes). Earlier bytes belong to other phases. */
  stdoutFrom: number;
}

/** One attempt, as an agent sees it. */
export interface Assignment {
  task: Task;
  /** The task's JSON text exactly as dropped. */
  taskText: string;
  /** From 1. */
  attempt: number;
  lease: string;
  /**
   * The claimed file, whose name is the lease; "" when the agent runs no task. Programs must not touch it: a run without this file has
   * lost its task.
   */
  claimFile: string;
  /** `runs/<run>`. The directory is made when the first file is put into it. */
  runDir: string;
  stateDir: string;
  /** The folder in which its program may leave tasks. Only set for a configured agent that is a program. */
  dropDir?: string;
  settings: Settings;
  /** Once it says stop, the agent stops its processes, then resolves. */
  stop: StopSignal;
  onProgress(details: Record<string, unknown>): void;
  /** The attempt cannot be stopped from inside this process, so the process must end. */
  onStuck(): void;
  /** Set when the task is a node of the plan. */
  node?: NodePhase;
  /** Values of `env_from` that its program got. Records must not show them. */
  secrets?: readonly string[];
  /** What its programs have used is added here. */
  usage: RunUsage;
  /** Its runs that are booked as completed: see `bookFailed`. */
  booked?: CostRecord[];
  /** Keeps its programs within their limits. Left out without limits. */
  limiter?: RunLimiter | undefined;
  /** Puts its programs behind walls. Left out: they work in the open. */
  walls?: Walls | undefined;
  /** Makes the meter of a program. Left out when its agent has none. */
  makeMeter?: MakeMeter | undefined;
  /** The size of the packets in the run's folder (bytes). */
  packetBytes?: number;
  /** Set when it runs in a worktree of its own: its directory there, and variables for its programs. */
  workspace?: RunPlace;
  /** What a coding agent is told besides its task. */
  briefing?: Briefing;
  /** The file that says how the check of the last run failed: see `worker/check.ts`. */
  lastCheck?: string;
  /** Set for a task that a person may take over. */
  person?: PersonWatch;
  /** A person has done the work: its files may be older than the run. */
  isByHand?: true;
  /** What is left of the attempt's time limit (ms) after an earlier part of the attempt. Left out: all of it. */
  timeLeftMs?: number;
}

export abstract class Agent {
  readonly name: string;

  constructor(readonly settings: AgentSettings) {
    this.name = settings.name;
  }

  /** Called before the first run. Prepares what that run would have to wait for, and runs no code of the user. */
  warmUp(): void {}

  /** Runs one attempt to its end. A task cannot make it reject; if it rejects, that is a fault of mailchute. */
  abstract run(assignment: Assignment): Promise<AttemptOutcome>;

  /** Called when the checks of a completed attempt have passed. @returns why the task runs once more; undefined when it is done */
  reopen(_assignment: Assignment): AttemptOutcome | undefined {
    return undefined;
  }

  /** Called when the checks of a completed attempt have failed: the next run goes on in the same session. */
  keepSession(_assignment: Assignment): void {}
}

/** Where the programs of an attempt run: its worktree, or a path relative to the directory that contains the state tree. */
export function workDirOf({
  task,
  stateDir,
  workspace,
}: Pick<Assignment, "task" | "stateDir" | "workspace">): string {
  return workspace?.cwd ?? resolve(stateDir, "..", task.metadata?.worktree ?? task.cwd ?? ".");
}

/** The outcome of an attempt that was stopped from outside. */
export function stoppedOutcome(reason: StopReason, limitMs: number): AttemptOutcome {
  if (reason === "timeout")
    return failed("timeout", "ErrTimeout", `it ran longer than its limit of ${limitMs} ms`);
  if (reason === "idle")
    return failed(
      "timeout",
      "ErrIdle",
      "it was silent for too long, and no tool of it was running",
    );
  if (reason === "cancel")
    return failed("cancelled", "ErrCancelled", "cancelled", { canRetry: false });
  return { kind: "released", message: reason };
}

/** The outcome of an attempt whose agent did not keep its promise never to reject. */
export function brokenAgent(name: string, error: unknown): AttemptOutcome {
  return failed("spawn", "ErrAgent", `the agent ${name} broke: ${messageOf(error)}`);
}

/** The time limit of one attempt (ms); 0 = none. */
export function timeoutOf(
  assignment: Pick<Assignment, "task" | "settings">,
  agent: AgentSettings,
): number {
  return assignment.task.timeout_ms ?? agent.timeout_ms ?? assignment.settings.timeout_ms;
}

/** How long this call may take (ms); 0 = no limit. @param limitMs the limit of the whole attempt */
export function timeLeftMs(assignment: Assignment, limitMs: number): number {
  return limitMs === 0 ? 0 : Math.max(1, assignment.timeLeftMs ?? limitMs);
}
