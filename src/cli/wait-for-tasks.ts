/** Waits until tasks have settled, by looking into the trays. Changes nothing and needs no supervisor to answer. */
import { join } from "node:path";
import {
  errorName,
  inboxName,
  parseRefusalName,
  readInboxName,
  resultName,
} from "../core/names.ts";
import type { StateTree } from "../core/state-tree.ts";
import { failedLines } from "./batch-bar.ts";
import type { Context } from "./command-spec.ts";
import { Doorbell } from "./doorbell.ts";
import { findTask, lookForRecord, lookForTask, processingPlaces } from "./find-task.ts";
import { countNames, eachName, readJsonObject, textOf } from "./scan.ts";
import { isAttended, readSupervisor } from "./supervisor-view.ts";

export interface Settled {
  id: string;
  status: "completed" | "failed";
  error?: string;
  /** Lines of a completed batch that failed. */
  failed_lines?: number;
}

export interface WaitResult {
  settled: Settled[];
  /** Still waiting or running when the time was over. */
  pending: string[];
  /** In no tray at all. */
  unknown: string[];
  isAllCompleted: boolean;
}

/** How often it is looked whether one was refused because another task holds its id (ms): that takes a listing. */
const REFUSALS_MS = 1000;

/** From this many on, one listing of the trays is cheaper than a look for each. */
const LISTING_FROM = 100;

export interface WaitOptions {
  /** Gives up after this long; left out = never. */
  timeoutMs?: number | undefined;
  /** True when the caller has just submitted them: none can be unknown. */
  areKnown?: boolean;
  /** Epoch ms; what was refused before is nothing of ours. Left out = now. */
  sinceMs?: number;
}

export async function waitForTasks(
  ctx: Pick<Context, "out">,
  tree: StateTree,
  ids: readonly string[],
  {
    timeoutMs = Number.POSITIVE_INFINITY,
    areKnown = false,
    sinceMs = Date.now(),
  }: WaitOptions = {},
): Promise<WaitResult> {
  const deadline = performance.now() + timeoutMs;
  const pending = new Set(ids);
  const result: WaitResult = { settled: [], pending: [], unknown: [], isAllCompleted: false };
  let refusalsAtMs = 0;
  const bell = new Doorbell([join(tree.mailbox, "outbox"), join(tree.mailbox, "failed")]);
  try {
    for (let isFirst = true; ; isFirst = false) {
      for (const settled of takeSettled(tree, pending)) result.settled.push(settled);
      if (isFirst) {
        if (!areKnown) await dropUnknown(tree, pending, result);
        if (pending.size > 0) sayIfAlone(ctx, tree);
      }
      if (pending.size > 0 && performance.now() >= refusalsAtMs) {
        refusalsAtMs = performance.now() + REFUSALS_MS;
        result.settled.push(...(await takeRefused(tree, pending, sinceMs)));
      }
      const leftMs = deadline - performance.now();
      if (pending.size === 0 || leftMs <= 0) break;
      await bell.next(leftMs);
    }
  } finally {
    bell.close();
  }
  result.pending = [...pending];
  result.isAllCompleted =
    result.settled.length === ids.length &&
    result.settled.every((one) => one.status === "completed" && one.failed_lines === undefined);
  return result;
}

/** Waits until nothing waits or runs. False when the time was over first. */
export async function waitForQuiet(
  ctx: Pick<Context, "out">,
  tree: StateTree,
  timeoutMs: number = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  const bell = new Doorbell([join(tree.mailbox, "inbox"), join(tree.mailbox, "processing")]);
  let quietLooks = 0;
  try {
    for (let isFirst = true; ; isFirst = false) {
      // A task on its way from one tray to the other can hide from one look, not from two in this order.
      quietLooks = isQuiet(tree) ? quietLooks + 1 : 0;
      if (quietLooks >= 2) return true;
      if (quietLooks === 1) continue;
      if (isFirst) sayIfAlone(ctx, tree);
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return false;
      await bell.next(leftMs);
    }
  } finally {
    bell.close();
  }
}

function isQuiet(tree: StateTree): boolean {
  const waiting = countNames(
    join(tree.mailbox, "inbox"),
    (name) => readInboxName(name).kind === "task",
    1,
  );
  return waiting.count === 0 && processingPlaces(tree).length === 0;
}

function takeSettled(tree: StateTree, pending: Set<string>): Settled[] {
  const listed = pending.size >= LISTING_FROM ? listRecords(tree) : undefined;
  const settled: Settled[] = [];
  for (const id of pending) {
    if (listed !== undefined && !listed.has(resultName(id)) && !listed.has(errorName(id))) continue;
    const record = lookForRecord(tree, id);
    if (record === undefined) continue;
    // A failed task that was put back has its record until the retry is through.
    if (record.state === "failed" && lookForTask(tree, id)?.state !== "failed") continue;
    pending.delete(id);
    if (record.state === "done") {
      const lines = failedLines(tree, id);
      settled.push({ id, status: "completed", ...(lines > 0 ? { failed_lines: lines } : {}) });
    } else
      settled.push({
        id,
        status: "failed",
        error: textOf(readJsonObject(record.path)?.["error"]),
      });
  }
  return settled;
}

/** Whose file was refused while another task held its id, perhaps in another case: the record has a name of its own. */
async function takeRefused(
  tree: StateTree,
  pending: Set<string>,
  sinceMs: number,
): Promise<Settled[]> {
  const dir = join(tree.mailbox, "failed");
  const found: { id: string; name: string }[] = [];
  eachName(dir, (name) => {
    const id = parseRefusalName(name);
    if (id !== undefined && pending.has(id)) found.push({ id, name });
    return true;
  });
  const settled: Settled[] = [];
  for (const { id, name } of found) {
    const record = readJsonObject(join(dir, name));
    const ours: unknown[] = [inboxName({ id }), inboxName({ id, isBatch: true })];
    if (!pending.has(id) || !ours.includes(record?.["dropped_as"])) continue;
    if (Number(record?.["failed_at"]) < Math.floor(sinceMs / 1000)) continue;
    // Where a task of this very id is, that was refused which somebody else dropped.
    if ((await findTask(tree, id))?.id === id) continue;
    pending.delete(id);
    settled.push({ id, status: "failed", error: textOf(record?.["error"]) });
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
  result: WaitResult,
): Promise<void> {
  for (const id of pending) {
    if ((await findTask(tree, id))?.id === id) continue;
    pending.delete(id);
    result.unknown.push(id);
  }
}

function sayIfAlone(ctx: Pick<Context, "out">, tree: StateTree): void {
  if (!isAttended(readSupervisor(tree, Date.now())))
    ctx.out.note("no supervisor runs on this state tree; waiting for one (mailchute run)");
}
