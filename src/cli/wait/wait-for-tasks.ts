/** Waits until tasks have settled, by looking into the trays. Changes nothing and needs no supervisor to answer. */
import fs from "node:fs";
import { join } from "node:path";
import type { SupervisorDocument } from "../../core/documents.ts";
import {
  errorName,
  inboxName,
  parseBesideName,
  readInboxName,
  resultName,
} from "../../core/names.ts";
import { isSkippedKind } from "../../core/skipped.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { failedLines } from "../../view/batches.ts";
import { nearestId } from "../../view/blocked-tasks.ts";
import {
  findTask,
  lookBeside,
  lookForRecord,
  lookForTask,
  processingPlaces,
} from "../../view/find-task.ts";
import { lookForLanding } from "../../view/landing.ts";
import { type Count, countNames, eachName, readJsonObject, textOf } from "../../view/scan.ts";
import { isAttended, readSupervisor } from "../../view/supervisor.ts";
import type { WhyOpen } from "../../view/why-open.ts";
import { ChangeSignal } from "./change-signal.ts";
import { type OpenTask, OpenTasks, openIds, type WaitContext } from "./open-tasks.ts";
import { WaitWatch } from "./slow-reasons.ts";
import { openWaitLine, type Standing } from "./wait-line.ts";

export interface Settled {
  id: string;
  status: "completed" | "failed";
  error?: string;
  /** True when it did not run, because a task that it depends on had failed. */
  skipped?: true;
  /** For a completed batch with failed lines: how many failed, of how many. */
  failed_lines?: number;
  lines?: number;
}

export interface WaitResult {
  settled: Settled[];
  /** Tasks that still waited or ran when the time was over. */
  pending: string[];
  /** The first pending tasks, with the reasons why they are open. */
  open: OpenTask[];
  /** Ids that are in no tray and not in the plan, each with the most similar id. */
  unknown: { id: string; near: string | null }[];
  isAllCompleted: boolean;
}

/** How often records with a longer name are looked for (ms). It is rare, because it lists the trays. */
const BESIDE_MS = 1000;

/** From this many tasks on, one listing of the trays is cheaper than a look for each. */
const LISTING_FROM = 100;

export interface WaitOptions {
  /** The longest wait; left out = no limit. */
  timeoutMs?: number | undefined;
  /** True when the caller has just submitted them: none can be unknown. */
  areKnown?: boolean;
  /** Epoch ms. An older record with a longer name does not belong to these tasks. Left out = any counts. */
  sinceMs?: number;
}

export async function waitForTasks(
  ctx: WaitContext,
  tree: StateTree,
  ids: readonly string[],
  { timeoutMs = Number.POSITIVE_INFINITY, areKnown = false, sinceMs = 0 }: WaitOptions = {},
): Promise<WaitResult> {
  const deadline = performance.now() + timeoutMs;
  let standing: Standing | undefined;
  const line = openWaitLine(ctx, tree);
  line?.follow(() => standing);
  const out = line?.beside(ctx.out) ?? ctx.out;
  const pending = new Set(ids);
  const result: WaitResult = {
    settled: [],
    pending: [],
    open: [],
    unknown: [],
    isAllCompleted: false,
  };
  const open = new OpenTasks({ ...ctx, out }, tree, timeoutMs);
  /** Ids that no tray had at the start: nodes that were not launched yet. */
  const nodes = new Set<string>();
  const beganMs = Date.now();
  let besideAtMs = 0;
  const change = new ChangeSignal([
    tree.dir,
    join(tree.mailbox, "outbox"),
    join(tree.mailbox, "failed"),
  ]);
  const watch = new WaitWatch({ out }, tree);
  try {
    for (let isFirst = true; ; isFirst = false) {
      for (const settled of takeSettled(tree, pending)) result.settled.push(settled);
      if (isFirst && !areKnown) await dropUnknown(tree, pending, nodes, open, result);
      if (pending.size > 0) watch.tell();
      if (nodes.size > 0) result.settled.push(...takeEnded(pending, nodes, await open.look()));
      if (pending.size > 0 && performance.now() >= besideAtMs) {
        besideAtMs = performance.now() + BESIDE_MS;
        // A node that has not run yet may have an older record with a longer name, left by an earlier task.
        const sinceOf = (id: string): number => (nodes.has(id) ? beganMs : sinceMs);
        result.settled.push(...(await takeBeside(tree, pending, sinceOf)));
      }
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
): Standing {
  return {
    ended: settled.length,
    failed: settled.filter(({ status, skipped }) => status === "failed" && skipped !== true).length,
    skipped: settled.filter(({ skipped }) => skipped === true).length,
    all: all - unknown.length,
    isWanted: (id) => pending.has(id),
  };
}

/** Waits until nothing waits or runs, in the mailbox or in the plan. @returns what was open when the time was over */
export async function waitForQuiet(
  ctx: WaitContext,
  tree: StateTree,
  timeoutMs: number = Number.POSITIVE_INFINITY,
): Promise<{ isQuiet: boolean; open: OpenTask[] }> {
  const deadline = performance.now() + timeoutMs;
  let standing: Standing | undefined;
  const line = openWaitLine(ctx, tree);
  line?.follow(() => standing);
  const out = line?.beside(ctx.out) ?? ctx.out;
  const watch = new WaitWatch({ out }, tree);
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
      // A task that moves between two trays can be missed by one look, but not by two in this order.
      quietLooks = isQuiet(tree) ? quietLooks + 1 : 0;
      if (quietLooks >= 2) return { isQuiet: true, open: [] };
      if (quietLooks === 1) continue;
      watch.tell();
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
  if (!roadmap)
    return !problem && fs.statSync(tree.roadmap, { throwIfNoEntry: false })?.isFile() === true;
  return roadmap.in_progress > 0 || roadmap.open > (holds?.held_count ?? 0);
}

function countTasks(tree: StateTree, max?: number): Count {
  return countNames(
    join(tree.mailbox, "inbox"),
    (name) => readInboxName(name).kind === "task",
    max,
  );
}

/** Nodes that ended without a record in the trays: a program removed it, or the node only groups others. */
function takeEnded(pending: Set<string>, nodes: Set<string>, { others }: WhyOpen): Settled[] {
  const ended: Settled[] = [];
  for (const id of nodes) {
    const standing = pending.has(id) ? others.standing(id) : undefined;
    const isDone = standing?.is === "met";
    if (pending.has(id) && !isDone && standing?.how !== "failed") continue;
    nodes.delete(id);
    if (!pending.delete(id)) continue;
    ended.push(
      isDone
        ? { id, status: "completed" }
        : { id, status: "failed", error: "the plan says that it failed" },
    );
  }
  return ended;
}

function takeSettled(tree: StateTree, pending: Set<string>): Settled[] {
  const listed = pending.size >= LISTING_FROM ? listRecords(tree) : undefined;
  const settled: Settled[] = [];
  for (const id of pending) {
    if (listed !== undefined && !listed.has(resultName(id)) && !listed.has(errorName(id))) continue;
    const record = lookForRecord(tree, id);
    if (record === undefined) continue;
    // A failed task that was put back keeps its record until the retry is complete.
    if (record.state === "failed" && lookForTask(tree, id)?.state !== "failed") continue;
    // A task whose work is to land has ended when it has landed.
    const landing = record.state === "done" ? lookForLanding(tree, id) : undefined;
    if (landing?.state === "open") continue;
    pending.delete(id);
    if (landing?.state === "failed")
      settled.push({ id, status: "failed", error: `it did not land: ${landing.why}` });
    else if (record.state === "done") {
      const counts = failedLines(tree, id);
      const lines =
        counts === undefined ? {} : { failed_lines: counts.failures, lines: counts.lines };
      settled.push({ id, status: "completed", ...lines });
    } else {
      const { error, kind } = readJsonObject(record.path) ?? {};
      const skipped = isSkippedKind(kind) ? { skipped: true as const } : {};
      settled.push({ id, status: "failed", error: textOf(error), ...skipped });
    }
  }
  return settled;
}

/**
 * Tasks whose record has a longer name: the file was refused while another task had its id, perhaps in another case, or something
 * else had the final name.
 */
async function takeBeside(
  tree: StateTree,
  pending: Set<string>,
  sinceOf: (id: string) => number,
): Promise<Settled[]> {
  const found: { id: string; path: string }[] = [];
  for (const dir of [join(tree.mailbox, "failed"), join(tree.mailbox, "outbox")])
    eachName(dir, (name) => {
      const id = parseBesideName(name);
      if (id !== undefined && pending.has(id)) found.push({ id, path: join(dir, name) });
      return true;
    });
  const settled: Settled[] = [];
  for (const { id, path } of found) {
    const record = readJsonObject(path);
    const ours: unknown[] = [undefined, inboxName({ id }), inboxName({ id, isBatch: true })];
    if (!pending.has(id) || record === undefined || !ours.includes(record["dropped_as"])) continue;
    const endedAt = record["failed_at"] ?? record["completed_at"];
    if (Number(endedAt) < Math.floor(sinceOf(id) / 1000)) continue;
    // When a task with exactly this id is here, the refused file came from another sender.
    if ((await findTask(tree, id))?.id === id) continue;
    pending.delete(id);
    if (record["status"] === "completed") settled.push({ id, status: "completed" });
    else settled.push({ id, status: "failed", error: textOf(record["error"]) });
  }
  return settled;
}

function listRecords(tree: StateTree): Set<string> {
  const names = new Set<string>();
  for (const tray of ["outbox", "failed"]) {
    eachName(join(tree.mailbox, tray), (name) => {
      names.add(name);
      return true;
    });
  }
  return names;
}

async function dropUnknown(
  tree: StateTree,
  pending: Set<string>,
  nodes: Set<string>,
  open: OpenTasks,
  result: WaitResult,
): Promise<void> {
  for (const id of pending) {
    if ((await findTask(tree, id))?.id === id) continue;
    const { others } = await open.look();
    if (others.standing(id) !== undefined) {
      nodes.add(id);
      continue;
    }
    if (lookBeside(tree, id) !== undefined) continue;
    // A plan that is being replaced at this moment is not there for a look, and is read a moment later.
    if ((await others.membership())?.(id) === true) {
      nodes.add(id);
      continue;
    }
    pending.delete(id);
    const near = nearestId(tree, id, others.ids());
    result.unknown.push({ id, near: near ?? null });
  }
}
