/** Gives work that cannot land back to its agent: submits a task in the same worktree, and in the same session if it has one. */
import { join } from "node:path";
import { giveSession, lastName, readContinued } from "../../agents/stream/continued.ts";
import { sessionOfRun } from "../../agents/stream/session-file.ts";
import { fixIdOf } from "../../core/landing.ts";
import { runOfLease } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import type { Trays } from "../../mailbox/files/trays.ts";
import { findInProcessing, isInFlight } from "../../mailbox/find/locate.ts";
import { readSettled } from "../../mailbox/find/settled-record.ts";
import { submitOnce } from "../../mailbox/submit/submit-once.ts";
import {
  type LandingOrder,
  type LandingState,
  listOrders,
  readLanding,
  type SentBack,
  stateOf,
  writeLanding,
} from "../../worker/landing-files.ts";

/** Why work goes back to its agent. */
export interface Unfit {
  cause: SentBack;
  /** The commit of the target that it does not fit. */
  target?: string;
  /** The files in conflict with it. */
  files?: readonly string[];
}

/** How often an agent may mend the same work, even if the target moves each time. */
const FIXES_MAX = 10;

/** Whether the agent can be told what to mend. A program in the `exec` of the task cannot. */
export function canMend({ prompt, has_exec }: LandingOrder): boolean {
  return prompt !== null && !has_exec;
}

/** Whether the agent may still get the work back by itself: once for each cause, and once more after each move of the target. */
export function mayMend(state: LandingState, { cause, target }: Unfit): boolean {
  const { sent_back: before = [], sent_at: at, fix } = state;
  if (!before.includes(cause)) return true;
  const hasMoved = target !== undefined && at !== undefined && at !== target;
  return cause === "work" && hasMoved && (fix?.n ?? 0) < FIXES_MAX;
}

/**
 * Notes what must be mended, then submits the task. A crash in between leaves the note, and `submitFix` must be called again.
 * @returns the id of the task. @throws ErrTaskExists, ErrInvalidTask, system errors
 */
export async function sendBack(
  tree: StateTree,
  trays: Trays,
  order: LandingOrder,
  text: string,
  { cause, target, files = [] }: Unfit = { cause: "work" },
): Promise<string> {
  const { task_id } = order;
  const { sent_back: before = [], sent_at: at = "" } = stateOf(tree.dir, order);
  const earlier = readLanding(tree.dir, task_id, "state");
  let n = (earlier?.fix?.n ?? 0) + 1;
  while (isUsed(trays, fixIdOf(task_id, n))) n++;
  const fix = { id: fixIdOf(task_id, n), n, text, files };
  const sent_back = [...new Set([...before, cause])];
  const { lease } = order;
  const state: LandingState = { v: 1, lease, fix, wait: null, sent_back, sent_at: target ?? at };
  writeLanding(tree.dir, task_id, "state", state);
  await submitFix(tree, trays, order, fix);
  return fix.id;
}

function isUsed(trays: Trays, id: string): boolean {
  return isInFlight(trays, id) || readSettled(trays, id) !== undefined;
}

/** Submits the mending task once. @returns its state; `gone` when it was submitted before and has no record any more */
export async function submitFix(
  tree: StateTree,
  trays: Trays,
  order: LandingOrder,
  { id, text }: NonNullable<LandingState["fix"]>,
): Promise<"open" | "completed" | "failed" | "gone"> {
  const status = (): "completed" | "failed" | undefined => readSettled(trays, id)?.record.status;
  if (isInFlight(trays, id) || isInFlight(trays, id)) return "open";
  const settled = status();
  if (settled !== undefined) return settled;
  const session = giveTo(tree, trays, order, id);
  const { verify, env, timeout_ms } = order.checks;
  const task = {
    id,
    title: `mend: ${order.title}`,
    agent: order.agent,
    ...(order.other_agents && { agents: [order.agent, ...order.other_agents] }),
    prompt: text,
    ...(order.cwd === "" ? {} : { cwd: order.cwd }),
    worktree: "auto",
    land: "none",
    verify,
    env,
    timeout_ms,
    metadata: { worktree_of: order.task_id },
    continues: order.task_id,
    fix_of: order.task_id,
    session,
    parent_id: order.task_id,
  };
  const bytes = Buffer.from(`${JSON.stringify(task)}\n`, "utf8");
  if ((await submitOnce(trays, { id, bytes })) === "submitted") return "open";
  if (isInFlight(trays, id) || isInFlight(trays, id)) return "open";
  return status() ?? "gone";
}

/** Gives the session of the task to the new task. Undefined when there is none or another task uses it: then a new one begins. */
function giveTo(
  tree: StateTree,
  trays: Trays,
  { task_id, lease }: LandingOrder,
  to: string,
): string | undefined {
  const session = sessionOfRun(join(tree.runs, runOfLease(task_id, lease)));
  const { session_id } = session ?? {};
  if (session === undefined || typeof session_id !== "string") return undefined;
  const last = lastName(tree.dir, session_id);
  const holder = last === undefined ? undefined : readContinued(tree.dir, last);
  if (holder?.task_id === to) return last;
  // Only one task at a time may write to a session.
  if (holder !== undefined && isInFlight(trays, holder.task_id)) return undefined;
  const given = {
    ...session,
    ...holder,
    session_id,
    task_id: to,
    continues: task_id,
    was_refused: false,
  };
  return giveSession(tree.dir, given, last, true);
}

/** The orders of other work for the same target. */
export function othersOf(
  { dir }: StateTree,
  { task_id, repository, target }: LandingOrder,
): LandingOrder[] {
  return listOrders(dir).flatMap((id) => {
    const other = id === task_id ? undefined : readLanding(dir, id, "order");
    return other?.repository === repository && other.target === target ? [other] : [];
  });
}

/**
 * Finds the fix of other work that changes one of some files, and that runs or is about to. If work on these files landed first, that fix
 * would be in conflict again.
 */
export function fixesOf(
  tree: StateTree,
  trays: Trays,
  others: readonly LandingOrder[],
): (files: readonly string[]) => string | undefined {
  const fixes = others.flatMap((other) => {
    const { fix } = stateOf(tree.dir, other);
    return fix?.files === undefined ? [] : [{ id: fix.id, files: new Set(fix.files) }];
  });
  return (files) =>
    fixes.find((fix) => {
      if (!files.some((file) => fix.files.has(file))) return false;
      // One that waits at a gate may wait for hours.
      const stage = findInProcessing(trays, fix.id)?.name?.stage;
      return stage === "ready" || stage === "w";
    })?.id;
}
