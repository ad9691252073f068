/**
 * The files in `landings/` of the state tree, one set for each task whose work may land. A worker writes `<id>.order.json` before
 * the task settles. The others belong to its landing: each has one writer, and names the lease of its order.
 */

import type { LandMode, WorkFacts } from "../core/landing.ts";
import type { Failed } from "../core/outcome.ts";
import { isText, oneOf, type Shape, shape } from "../core/shape.ts";
import { landingsDir } from "../core/state-tree.ts";
import type { Task } from "../core/task.ts";
import { Documents } from "../host/document-store.ts";
import { listDirForSure } from "../host/list-dir.ts";

export interface LandingOrder extends Omit<WorkFacts, "landing"> {
  v: 1;
  task_id: string;
  /** The lease of the run that did the work. */
  lease: string;
  title: string;
  land: LandMode;
  into_checkout: boolean;
  command: string[];
  /** The git directory that all worktrees of the repository share. */
  repository: string;
  /** Where in the worktree the task runs, with a slash at its end; "" at the top. */
  prefix: string;
  worktree: string;
  /** Where the task would run without a worktree. */
  cwd: string;
  /** The prefix of all refs of the task except its branch. */
  refs: string;
  /** This ref exists if a run has changed settings or hooks of the repository. */
  changed_ref: string;
  agent: string;
  /** Agents that may mend the work in its place. */
  other_agents?: string[];
  /** The programs that check the work again. */
  checks: Pick<Task, "verify" | "setup" | "env" | "timeout_ms">;
  /** The text of the whole task, for an agent that is asked to mend the work. */
  prompt: string | null;
  has_exec: boolean;
  /** The agent whose `pass` it needs. */
  review_by?: string;
  /** See `LandFields`. */
  protect?: string[];
  verify_from?: "target";
  prove?: true | string[];
  /** When the worktree was made (epoch ms). */
  began_ms?: number;
}

/** The progress of a landing. Its runs write it, and `reject` does. */
export interface LandingState {
  v: 1;
  lease: string;
  /** The task that mends the work, the text for its agent, and the files in conflict: other landings that change them wait for it. */
  fix: { id: string; n: number; text: string; files?: readonly string[] } | null;
  /** What the landing waits for: the task `on`, or else until a time (epoch ms). */
  wait: { why: string; on: string | null; until_ms: number } | null;
  /** For which reasons the agent already got the work back: at most once for each, and once more for each move of the target. */
  sent_back?: SentBack[];
  /** The commit of the target that the work last did not fit when its agent got it back; "" if that was never the reason. */
  sent_at?: string;
  /** The commit that a person accepts without the reviewer. */
  accepted?: string;
  /** The commit whose changes of protected files a person accepts. */
  accepted_files?: string;
  /** git has confirmed that the work landed, or that there was nothing to land. This counts when the record of the landing is gone. */
  landed?: boolean;
  /** The commit that landed. */
  commit?: string;
}

/** `work`: the work did not fit the target, a check failed, or a person rejected it. */
export type SentBack = "work" | "review";

/** The verdict of a reviewer on a commit. The run of the review writes it under its own id, before it settles. */
export interface ReviewVerdict {
  v: 1;
  /** The lease of the order. */
  lease: string;
  commit: string;
  by: string;
  verdict: "pass" | "fail";
  text: string;
}

/**
 * The check of the work has failed while another landing brought it together. The landing that did so writes it, and the work's own
 * landing takes it in place of a check, once.
 */
export interface LandingRed {
  v: 1;
  /** The lease of the order. */
  lease: string;
  /** The tip of the branch, and the commit on which it was checked. */
  tip: string;
  target: string;
  failure: Failed;
}

/** Says that the landing of the order with this lease was submitted. */
export interface LandingSent {
  v: 1;
  lease: string;
}

interface LandingFiles {
  order: LandingOrder;
  state: LandingState;
  sent: LandingSent;
  red: LandingRed;
  verdict: ReviewVerdict;
}

const ofLease = shape({ v: oneOf(1), lease: isText });
const landings = <What extends keyof LandingFiles>(
  stateDir: string,
): Documents<LandingFiles[What]> =>
  new Documents(stateDir, "landings", ofLease as Shape<LandingFiles[What]>, { isDurable: true });

/** Undefined when there is no such file, or it cannot be read now. */
export function readLanding<What extends keyof LandingFiles>(
  stateDir: string,
  id: string,
  what: What,
): LandingFiles[What] | undefined {
  return landings<What>(stateDir).read(`${id}.${what}`);
}

/** Like `readLanding`. @throws a system error when it cannot be read: then it is not known */
export function loadOrder(stateDir: string, id: string): LandingOrder | undefined {
  return loadForSure(stateDir, id, "order");
}

/** The verdict that the review task of this id gave. @throws a system error when it cannot be read */
export function loadVerdict(stateDir: string, reviewId: string): ReviewVerdict | undefined {
  return loadForSure(stateDir, reviewId, "verdict");
}

function loadForSure<What extends "order" | "verdict">(
  stateDir: string,
  id: string,
  what: What,
): LandingFiles[What] | undefined {
  const found = landings<What>(stateDir).load(`${id}.${what}`);
  // Only in a folder that can be listed is a file missing for sure.
  if (found === undefined) listOrders(stateDir);
  return found;
}

/** The state of the landing of this order; that of an earlier one does not count. */
export function stateOf(stateDir: string, { task_id, lease }: LandingOrder): LandingState {
  const found = readLanding(stateDir, task_id, "state");
  if (found?.lease === lease) return found;
  return { v: 1, lease, fix: null, wait: null };
}

export function writeLanding<What extends keyof LandingFiles>(
  stateDir: string,
  id: string,
  what: What,
  document: LandingFiles[What],
): void {
  landings<What>(stateDir).replace(`${id}.${what}`, document);
}

/** The tasks that have an order. @throws a system error when the folder cannot be listed */
export function listOrders(stateDir: string): string[] {
  const ending = ".order.json";
  return listDirForSure(landingsDir(stateDir)).flatMap((name) =>
    name.endsWith(ending) ? [name.slice(0, -ending.length)] : [],
  );
}
