/**
 * The ports through which a part, such as the plan, extends a supervisor. A supervisor without parts runs tasks. A part implements
 * only the ports that it needs; `Parts` asks all parts.
 */
import type { ClosedGate, PlanHolds, SupervisorDocument } from "../../core/documents.ts";
import type { StatusCounts } from "../../core/roadmap.ts";
import type { DependencyState } from "../../core/unmet.ts";
import type { Lane } from "../../core/waiting-task.ts";
import type { Service } from "./service.ts";

/** Of its methods each part has those that it needs. */
export interface Part extends Partial<Service> {
  readonly ports?: PartPorts;
  /**
   * Finds work that is in progress from an earlier run. Resolves when that is known, and never rejects.
   * @param isOnePass only work that is ready now may start
   */
  start?(isOnePass: boolean): Promise<void>;
  /** Called when no task runs any more: handles the last results, for at most `limitMs`. Never rejects. */
  finish?(limitMs: number): Promise<void>;
  /** Closes its files. Called without `finish` when another supervisor has taken over. */
  close?(): void;
}

/** Every member is optional. */
export interface PartPorts {
  tasks?: TaskSource;
  work?: WorkSource;
  dependencies?: DependencySource;
  startLimit?: StartLimit;
  groups?: GroupSource;
  status?: StatusSource;
}

/** A part that makes tasks by itself. */
export interface TaskSource {
  /** Whether a task with this id would be one of its own. */
  isOwn(id: string): boolean;
  /** Takes its own waiting task out of the mailbox, even one that waits for a retry. False when the task runs, or is not its own. */
  takeBack(id: string, isAgain: boolean): Promise<boolean>;
  /** Takes its own task, which was put back, out of the inbox. False when it does not wait there. */
  withdraw(id: string): Promise<boolean>;
  /** Tasks that are about to begin, and that no worker has claimed yet: a pause lets them begin. */
  unbegun(): string[];
  /** Returns a function that says whether it knows an id; undefined when that cannot be said now. */
  membership(): ((id: string) => boolean) | undefined;
}

/** A part with work that is not in the mailbox. */
export interface WorkSource {
  /** Whether it could start a task now. */
  canStart(): boolean;
  /** Whether it is about to start a task, or handles one that ended. */
  isBusy(): boolean;
  /** Whether it has no task in progress, and will not start one by itself. */
  isIdle(): boolean;
}

/** A part that knows ids on which tasks may depend. */
export interface DependencySource {
  /** Undefined when it does not know the id. */
  isDone(id: string): boolean | undefined;
  /** Whether this id has completed or failed; undefined when the part does not know it. The part itself handles a failure of its ids. */
  hasEnded?(id: string): boolean | undefined;
  /** The state of this id, for tasks that wait for it; undefined when it does not know the id. */
  standing(id: string): DependencyState | undefined;
  /** Completed tasks whose dependents still have to wait, by folded id: the same map as long as nothing has changed. */
  unlanded?(): Unlanded;
}

export type Unlanded = ReadonlyMap<string, DependencyState>;

/** A part that may hold tasks back. */
export interface StartLimit {
  /** While only planners may start, the other tasks that are about to begin and may, too. Undefined when it holds nothing back. */
  replan?(): readonly string[] | undefined;
  /** The gates that are closed now. The supervisor reports them, and asks `closes` which of them hold back a task. */
  readonly gates?: readonly ClosedGate[];
  /** Whether a task of this lane may start although this gate is closed. It is called for each start, so it must be quick. */
  mayPass?(lane: Lane, gate: ClosedGate): boolean;
  /** For a part with too many gates to ask each: the gate that holds back this lane. It must be quick, too. */
  closed?(lane: Lane): Closed | undefined;
  /** Called when a task of this lane starts. @returns false when it does not count the starts of this lane: see `Gates` */
  noteStart?(lane: Lane, id: string): boolean;
}

/** Describes a gate that is closed. Most callers only want to know that it is. */
export type Closed = () => ClosedGate | undefined;

/** A part that knows groups of tasks. */
export interface GroupSource {
  /** False as long as there can be no task of such groups: then nothing is counted for them. */
  readonly hasGroups: boolean;
  /** How many tasks of this group may be in work at once; undefined when it does not know the group. The number never changes. */
  slotsOf(group: string): number | undefined;
}

/** The answers of all parts together about the tasks of a lane. */
export interface Gates {
  readonly mayStart: (lane: string) => boolean;
  /** The agent that runs the tasks of this lane now. */
  agentFor(lane: string): string;
  /** @returns false when no part counts the starts of this lane: then no other start of this round closes it */
  noteStart(lane: string, id: string): boolean;
}

/** The part's share of the status for people. */
export interface StatusSource {
  /** Changes whenever the part has a new status to report. */
  readonly version: number;
  report?(): PartReport;
  /** Describes the first of its own items that no agent fits and that wait for nothing else, one line each. */
  unmatched?(max: number): string[];
  /** The tasks that it would start, best first. */
  wouldRun?(): string[];
  /** Work that continues although the pool is paused: one sentence each, for people. */
  goesOn?(): string[];
}

export interface PartReport {
  /** The number of plan nodes by status; left out without a plan. */
  roadmap?: StatusCounts;
  planHolds?: PlanHolds;
  /** Why `roadmap.yaml` cannot be used. */
  roadmapProblem?: string;
  limits?: NonNullable<SupervisorDocument["limits"]>;
}
