/** Waits until tasks have settled. It looks into the trays, changes nothing, and needs no supervisor. */
import { join } from "node:path";
import type { SupervisorDocument } from "../../core/documents.ts";
import { readInboxName } from "../../core/names.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { ChangeSignal } from "../../host/change-signal.ts";
import { statOf } from "../../host/regular-file.ts";
import { processingPlaces } from "../../view/find-task.ts";
import { type Count, countNames } from "../../view/scan.ts";
import { isAttended, readSupervisor } from "../../view/supervisor.ts";
import { type EndsOptions, type Settled, TaskEnds } from "../../view/task-ends.ts";
import { type OpenTask, OpenTasks, openIds, type WaitContext } from "./open-tasks.ts";
import { openWaitLine, type WaitProgress } from "./wait-line.ts";

export interface WaitResult {
  settled: Settled[];
  /** Tasks that were still waiting or running when the time was over. */
  pending: string[];
  /** The first pending tasks, with the reasons why they are open. */
  open: OpenTask[];
  /** Ids that are in no tray and not in the plan, each with the most similar id. */
  unknown: { id: string; near: string | null }[];
  isAllCompleted: boolean;
}

export interface WaitOptions extends EndsOptions {
  /** The longest wait; left out = no limit. */
  timeoutMs?: number | undefined;
}

export async function waitForTasks(
  ctx: WaitContext,
  tree: StateTree,
  ids: readonly string[],
  { timeoutMs = Number.POSITIVE_INFINITY, ...options }: WaitOptions = {},
): Promise<WaitResult> {
  const deadline = performance.now() + timeoutMs;
  let standing: WaitProgress | undefined;
  const line = openWaitLine(ctx, tree);
  line?.follow(() => standing);
  const out = line?.beside(ctx.out) ?? ctx.out;
  const result: WaitResult = {
    settled: [],
    pending: [],
    open: [],
    unknown: [],
    isAllCompleted: false,
  };
  const open = new OpenTasks({ ...ctx, out }, tree, timeoutMs);
  const ends = new TaskEnds(tree, ids, () => open.look(), options);
  const { pending } = ends;
  result.unknown = ends.unknown;
  const change = new ChangeSignal([
    tree.dir,
    join(tree.mailbox, "outbox"),
    join(tree.mailbox, "failed"),
  ]);
  try {
    for (;;) {
      for (const { record: _record, ...settled } of await ends.take()) result.settled.push(settled);
      if (pending.size > 0) open.tellPool();
      const leftMs = deadline - performance.now();
      if (pending.size === 0 || leftMs <= 0) break;
      standing = standingOf(result, ids.length, pending);
      await open.tell(pending);
      await change.next(Math.min(leftMs, Math.max(0, open.inMs)));
    }
    result.pending = [...pending];
    result.open = await open.list(pending);
    if (!ctx.json) open.say(result.open, pending.size);
  } finally {
    change.close();
    line?.close();
  }
  result.isAllCompleted =
    result.settled.length === ids.length &&
    result.settled.every((one) => one.status === "completed" && one.failed_lines === undefined);
  return result;
}

function standingOf(
  { settled, unknown }: WaitResult,
  all: number,
  pending: ReadonlySet<string>,
): WaitProgress {
  return {
    ended: settled.length,
    failed: settled.filter(({ status, skipped }) => status === "failed" && skipped !== true).length,
    skipped: settled.filter(({ skipped }) => skipped === true).length,
    all: all - unknown.length,
    isWanted: (id) => pending.has(id),
  };
}

/** Waits until no task waits or runs, in the mailbox or in the plan. @returns the tasks that were open when the time was over */
export async function waitForQuiet(
  ctx: WaitContext,
  tree: StateTree,
  timeoutMs: number = Number.POSITIVE_INFINITY,
): Promise<{ isQuiet: boolean; open: OpenTask[] }> {
  const deadline = performance.now() + timeoutMs;
  let standing: WaitProgress | undefined;
  const line = openWaitLine(ctx, tree);
  line?.follow(() => standing);
  const out = line?.beside(ctx.out) ?? ctx.out;
  const tasks = new OpenTasks({ ...ctx, out }, tree, timeoutMs);
  let most = 0;
  const change = new ChangeSignal([
    tree.dir,
    join(tree.mailbox, "inbox"),
    join(tree.mailbox, "processing"),
  ]);
  let quietLooks = 0;
  try {
    for (;;) {
      // One look can miss a task that moves between two trays, but two looks in this order cannot.
      quietLooks = isQuiet(tree) ? quietLooks + 1 : 0;
      if (quietLooks >= 2) return { isQuiet: true, open: [] };
      if (quietLooks === 1) continue;
      tasks.tellPool();
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) break;
      if (line !== undefined) {
        const left = countTasks(tree).count + processingPlaces(tree).length;
        most = Math.max(most, left);
        standing = { ended: most - left, failed: 0, all: most, isWanted: () => true };
      }
      await tasks.tell(openIds(tree));
      await change.next(Math.min(leftMs, Math.max(0, tasks.inMs)));
    }
  } finally {
    change.close();
    line?.close();
  }
  const open = await tasks.list(openIds(tree));
  if (!ctx.json) {
    const inbox = countTasks(tree);
    tasks.say(open, inbox.count + processingPlaces(tree).length, inbox.is_exact);
  }
  return { isQuiet: false, open };
}

function isQuiet(tree: StateTree): boolean {
  if (countTasks(tree, 1).count > 0 || processingPlaces(tree).length > 0) return false;
  const view = readSupervisor(tree, Date.now());
  return !isAttended(view) || !isPlanMoving(tree, view.document);
}

/** True while nodes run or would be launched next: between two nodes the mailbox is empty. */
function isPlanMoving(tree: StateTree, document: SupervisorDocument | null): boolean {
  const { roadmap, plan_holds: holds, roadmap_problem: problem } = document ?? {};
  // A supervisor that has just started has not read the plan yet.
  if (!roadmap) return !problem && statOf(tree.roadmap)?.isFile() === true;
  return roadmap.in_progress > 0 || roadmap.open > (holds?.held_count ?? 0);
}

function countTasks(tree: StateTree, max?: number): Count {
  return countNames(
    join(tree.mailbox, "inbox"),
    (name) => readInboxName(name).kind === "task",
    max,
  );
}
