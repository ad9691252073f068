/** Types only: one attempt, the tools it works with, and the ports of parts: special runners, directories of runs, briefings. */
import type { Agent, Assignment, StopSignal } from "../agents/agent.ts";
import type { Briefing } from "../agents/briefing.ts";
import type { AgentKindEntry, AgentPlace } from "../agents/coding-kind.ts";
import type { Handler } from "../agents/handler.ts";
import type { MakeMeter } from "../agents/meter.ts";
import type { AgentRegistry } from "../agents/registry.ts";
import type { MakeLimiter } from "../agents/run-limiter.ts";
import type { MakeWalls, RunPlace } from "../agents/walls.ts";
import type { DecodedTask } from "../codec/task-codec.ts";
import type { BatchCounts } from "../core/batch.ts";
import type { EventSubject } from "../core/events.ts";
import type { KeptWork, WorkFacts } from "../core/landing.ts";
import type { AttemptOutcome, Decision } from "../core/outcome.ts";
import type { RunUsage } from "../core/run-usage.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Claim } from "../mailbox/claim/claim.ts";
import type { MakeFollow, Trays } from "../mailbox/files/trays.ts";
import type { Settlement } from "../mailbox/settle/settle.ts";
import type { LandingOrder } from "./landing-files.ts";
import type { Hold } from "./protocol.ts";
import type { RequestTaker } from "./request-taker.ts";

export interface Attempt {
  claim: Claim;
  /** The name under which the task waited. */
  readyFile: string;
  /** False when this worker found it itself. */
  isOffered: boolean;
  subject: EventSubject;
  /** Undefined for a batch, and for an unreadable file. */
  decoded: DecodedTask | undefined;
  startedWallMs: number;
  startedMonotonicMs: number;
  durationMs: number;
  usage: RunUsage;
  /** By this time a well-behaved handler has ended (monotonic ms); 0 = no limit. */
  deadlineMs: number;
  stop: StopSignal;
  /** Where its task waits when its run was interrupted. */
  hold?: Hold | undefined;
  outcome: AttemptOutcome | undefined;
  decision: Decision | undefined;
  settlement: Settlement | undefined;
  /** Since when (monotonic ms) the attempt stays here only for its delay. */
  heldSinceMs?: number;
  /** Why no agent in this worker's settings fits: the task is left to other workers. */
  unfitReason?: string;
  /** When the rates of its limits were charged for it: see `Rates`. */
  rates?: Readonly<Record<string, number>>;
  /** A rate holds the attempt back: its run has not begun. */
  isUnbegun?: true;
  /** Only for a task of several agents: those that had it before this one. */
  before?: readonly string[];
  /** The agent that runs it in the place of its first one. */
  standIn?: Agent;
  /** Set when its run has left work on a branch of its own. */
  work?: WorkFacts;
  /** Where its work is that its branch lacks. */
  kept?: KeptWork;
  /** Only for a batch, once it has ended. */
  counts?: BatchCounts;
  /** Its failure has already waited for our own signal: see `judgeSignal`. */
  hasAwaitedSignal?: true;
}

export interface AttemptTools {
  readonly trays: Trays;
  readonly settings: Settings;
  readonly agents: AgentRegistry;
  readonly tree: StateTree;
  /** Undefined: there is no part that makes worktrees. */
  readonly loadWorkspaces?: LoadWorkspaces | undefined;
  readonly requests?: readonly RequestTaker[];
  /** Undefined: there is no part that briefs agents. */
  readonly makeBriefing?: MakeBriefing | undefined;
  /** Undefined: there is no part that limits runs. */
  readonly makeLimiter?: MakeLimiter | undefined;
  /** Undefined: there is no part that builds walls. */
  readonly makeWalls?: MakeWalls | undefined;
  /** Undefined: there is no part that meters runs. */
  readonly makeMeter?: MakeMeter | undefined;
}

/** Callbacks of a running attempt. */
export interface RunHooks {
  onProgress: (details: Record<string, unknown>) => void;
  onPhase: (event: "phase_started" | "phase_finished", details: Record<string, unknown>) => void;
  /** A handler does not end: the process must end. */
  onStuck: () => void;
  /** How many programs this attempt may run at once; 0 = paused, or short of disk: nothing new starts. */
  room: () => number;
  /** By this time well-behaved handlers have ended (monotonic ms); 0 = no limit. */
  onDeadline: (deadlineMs: number) => void;
}

/** Runs attempts of one kind, instead of a single call of their agent. */
export interface Runner {
  /** Asked for a batch, and for a task with a `type`, `metadata` or a `group`: others are plain. */
  fits(attempt: Attempt): boolean;
  /**
   * Resolves when no work of the attempt runs any more.
   * @param assigned undefined for a task that names no agent, such as a batch
   */
  run(
    attempt: Attempt,
    hooks: RunHooks,
    assigned: AssignedAgent | undefined,
  ): Promise<AttemptOutcome>;
  /** Closes its files, when the worker ends. */
  close?(): void;
}

/** Called once for each worker process. */
export type MakeRunner = (tools: AttemptTools) => Runner;

/** What parts add to a worker process. */
export interface WorkerParts {
  readonly runners: readonly MakeRunner[];
  readonly kinds: (place: AgentPlace) => readonly AgentKindEntry[];
  /** Functions of this process, by the names of their agents. */
  readonly handlers?: ReadonlyMap<string, Handler>;
  /** The first one is used. */
  readonly workspaces?: readonly LoadWorkspaces[];
  readonly requests?: readonly RequestTaker[];
  /** The first one is used. */
  readonly briefings?: readonly MakeBriefing[];
  /** The first one is used. */
  readonly limiters?: readonly MakeLimiter[];
  /** The first one is used. */
  readonly walls?: readonly MakeWalls[];
  /** The first one is used. */
  readonly meters?: readonly MakeMeter[];
  /** The first one is used. */
  readonly follow?: readonly MakeFollow[];
}

export interface AssignedAgent {
  agent: Agent;
  assignment: Assignment;
  /** The commit at which its work began: see `Workspace`. */
  base?: (() => Promise<Base | undefined>) | undefined;
}

/** The commit at which the work of a task began. */
export interface Base {
  commit: string;
  /** The repository and the folder in it, for people. */
  where: string;
  /** The same for bases with the same files. */
  key: string;
  /** Where the work is. */
  workRoot: string;
  /** Whether the work has the same files: then a check that is green here is flaky. @throws ErrGit */
  hasSameFiles(): Promise<boolean>;
  /** Makes a clean checkout, and removes it when `use` has ended. @throws ErrGit, system errors */
  checkOut<T>(use: (there: { root: string; cwd: string }) => Promise<T>): Promise<T>;
}

/** The directory of a run, and the environment that belongs to it. */
export interface Workspace extends RunPlace {
  /** The commit at which its work began, for a check that is red; undefined: the check alone counts. */
  readonly base?: (() => Promise<Base | undefined>) | undefined;
  /** Called when no process of the run is left. Never rejects. @param isLast the task ends with this outcome */
  finish(outcome: AttemptOutcome, isLast: boolean): Promise<Finished>;
}

export interface Finished {
  /** The given outcome. If the work of a completed run could not be saved: an outcome that lets the task run again. */
  outcome: AttemptOutcome;
  /** The facts about its work for the record of a completed task. */
  work?: WorkFacts;
  /** Where its work is that its branch lacks, for the record. */
  kept?: KeptWork;
}

export interface Workspaces {
  /** Makes the directory, or finds that of an earlier run. Never rejects. @returns the outcome of the run if it gets no directory */
  prepare(assigned: AssignedAgent): Promise<Workspace | AttemptOutcome>;
  /** What the repository of this directory holds, to tell whether it has changed; undefined when there is none. Never rejects. */
  stampOf(dir: string): Promise<string | undefined>;
  /**
   * Removes the directory of a task whose work is elsewhere now, unless it holds anything else worth keeping.
   * @param landed the branch is removed, too, if it is at this commit; left out: the branch stays
   * @returns why it stays; an empty list: it is gone
   */
  release(order: LandingOrder, landed?: string): Promise<string[]>;
}

/** Called for the first run that wants one, so that other workers do not load the code. */
export type LoadWorkspaces = (tools: AttemptTools) => Promise<Workspaces>;

/** Never rejects. @returns undefined when this run gets no briefing */
export type MakeBriefing = (
  tools: Pick<AttemptTools, "tree">,
  assigned: AssignedAgent,
) => Promise<Briefing | undefined>;
