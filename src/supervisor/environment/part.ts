/**
 * What a part may add to a supervisor: the plan is one. A supervisor without parts runs tasks. A part offers the ports that it
 * has a use for; `Parts` asks all of them.
 */
import type { ClosedGate, PlanHolds } from "../../core/documents.ts";
import type { StatusCounts } from "../../core/roadmap.ts";
import type { Standing } from "../../core/unmet.ts";
import type { Service } from "./service.ts";

export interface Part extends Service {
  readonly ports: PartPorts;
  /** Finds out what is under way from before. Resolves when that is known, and never rejects. @param isOnePass only what is ready now may start */
  start(isOnePass: boolean): Promise<void>;
  /** Called when nothing runs any more: does what follows from the last results, for at most `limitMs`. Never rejects. */
  finish(limitMs: number): Promise<void>;
  /** Lets go of its files. Called without `finish` when another supervisor has taken over. */
  close(): void;
}

/** All may be left out. */
export interface PartPorts {
  tasks?: TaskSource;
  work?: WorkSource;
  dependencies?: DependencySource;
  startLimit?: StartLimit;
  status?: StatusSource;
}

/** A part that makes tasks by itself. */
export interface TaskSource {
  /** Whether a task of this id would be one of its own. */
  isOwn(id: string): boolean;
  /** Takes its own task that waits, for a worker or its retry, out of the mailbox. False when it runs, or is none of its own. */
  takeBack(id: string, isAgain: boolean): Promise<boolean>;
  /** Takes its own task out of the inbox, where it was put back. False when it does not wait there. */
  withdraw(id: string): Promise<boolean>;
  /** Tasks that are about to begin, and that no worker has claimed yet: a pause lets them begin. */
  unbegun(): string[];
  /** Whether an id is one that it knows; undefined when that cannot be said now. */
  membership(): ((id: string) => boolean) | undefined;
}

/** A part that has more to do than what lies in the mailbox. */
export interface WorkSource {
  /** It could start a task now. */
  canStart(): boolean;
  /** It is about to start one, or does what follows from one that ended. */
  isBusy(): boolean;
  /** Nothing of its own is under way, and nothing will begin by itself. */
  isIdle(): boolean;
}

/** A part that knows ids which tasks may depend on. */
export interface DependencySource {
  /** Undefined when it does not know the id. */
  isDone(id: string): boolean | undefined;
  /** How it stands, for what waits for it; undefined when it does not know the id. */
  standing(id: string): Standing | undefined;
}

/** Which of the waiting tasks may be chosen. `ids` are tasks that are about to begin; only their first run may start. */
export type Choice =
  | { kind: "all" }
  | { kind: "planners"; ids: readonly string[] }
  | { kind: "these"; ids: readonly string[] };

/** A part that may hold tasks back. */
export interface StartLimit {
  /** Undefined: it holds nothing back. */
  choice?(): Choice | undefined;
  /** Whether a task of this lane may start now: see `laneOf`. Asked for each start, so it must be quick. */
  mayStart?(lane: string): boolean;
  /** A task of this lane starts. */
  noteStart?(lane: string): void;
}

/** What all parts say of the tasks of a lane. */
export interface Gates {
  readonly mayStart: (lane: string) => boolean;
  noteStart(lane: string): void;
}

/** What a part adds to what people are told. */
export interface StatusSource {
  /** Another number whenever there is something else to tell. */
  readonly version: number;
  report(): PartReport;
  /** Of its own that wait for nothing but an agent, a line each: the first of them. */
  unmatched(max: number): string[];
  /** What it would start, best first. */
  wouldRun(): string[];
}

export interface PartReport {
  /** Nodes of the plan by status; left out without a plan. */
  roadmap?: StatusCounts;
  planHolds?: PlanHolds;
  /** What is wrong with `roadmap.yaml`, when it cannot be used. */
  roadmapProblem?: string;
  /** Gates that are closed. */
  gates?: ClosedGate[];
}
