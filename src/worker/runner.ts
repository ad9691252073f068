/** One attempt, what it works with, and the port of those that run it in a way of their own. Shapes only. */
import type { Agent, Assignment, StopSignal } from "../agents/agent.ts";
import type { AgentKindEntry, AgentRegistry } from "../agents/registry.ts";
import type { DecodedTask } from "../codec/task-codec.ts";
import type { BatchCounts } from "../core/batch.ts";
import type { EventSubject } from "../core/events.ts";
import type { AttemptOutcome, Decision } from "../core/outcome.ts";
import type { Settings } from "../core/settings.ts";
import type { StateTree } from "../core/state-tree.ts";
import type { Claim } from "../mailbox/claim.ts";
import type { Settlement } from "../mailbox/settle.ts";
import type { Trays } from "../mailbox/trays.ts";

export interface Attempt {
  claim: Claim;
  /** The name it waited under. */
  readyFile: string;
  /** False when this worker found it by itself. */
  isOffered: boolean;
  subject: EventSubject;
  /** Undefined for a batch, and for what cannot be read. */
  decoded: DecodedTask | undefined;
  startedWallMs: number;
  startedMonotonicMs: number;
  durationMs: number;
  /** Monotonic ms by which a well-behaved handler has let go; 0 = no limit. */
  deadlineMs: number;
  stop: StopSignal;
  outcome: AttemptOutcome | undefined;
  decision: Decision | undefined;
  settlement: Settlement | undefined;
  /** Since when it is held only until its delay is over (monotonic ms). */
  heldSinceMs?: number;
  /** Why no agent of this worker's settings fits: it is left to other workers. */
  unfitReason?: string;
  /** Of a batch, once it has ended. */
  counts?: BatchCounts;
}

export interface AttemptTools {
  readonly trays: Trays;
  readonly settings: Settings;
  readonly agents: AgentRegistry;
  readonly tree: StateTree;
}

/** What a run tells while it lasts. */
export interface RunHooks {
  onProgress: (details: Record<string, unknown>) => void;
  onPhase: (event: "phase_started" | "phase_finished", details: Record<string, unknown>) => void;
  /** A handler does not let go: the process must end. */
  onStuck: () => void;
  /** Programs that this attempt may run at once; 0 = paused, or short of disk: nothing new starts. */
  room: () => number;
  /** Monotonic ms by which well-behaved handlers give way; 0 = no limit. */
  onDeadline: (deadlineMs: number) => void;
}

/** Runs attempts of one kind in place of a single call of their agent. */
export interface Runner {
  fits(attempt: Attempt): boolean;
  /**
   * Resolves when nothing of it runs any more.
   * @param assigned undefined for what names none, as a batch
   */
  run(
    attempt: Attempt,
    hooks: RunHooks,
    assigned: AssignedAgent | undefined,
  ): Promise<AttemptOutcome>;
  /** Lets go of its files, when the worker ends. */
  close?(): void;
}

/** Called once for each worker process. */
export type MakeRunner = (tools: AttemptTools) => Runner;

/** What parts add to a worker process. */
export interface WorkerParts {
  readonly runners: readonly MakeRunner[];
  readonly kinds: readonly AgentKindEntry[];
}

export interface AssignedAgent {
  agent: Agent;
  assignment: Assignment;
}
