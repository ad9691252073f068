/** What each command does to a running pool. Idempotent: a crash may have it applied twice. */
import { join } from "node:path";
import { encodeRecord } from "../codec/records.ts";
import { type DecodedTask, decodeTask } from "../codec/task-codec.ts";
import type { Backlog } from "../core/backlog.ts";
import { wallSeconds } from "../core/clock.ts";
import type { Command } from "../core/command.ts";
import {
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrIo,
  ErrTaskNotFound,
  messageOf,
} from "../core/errors.ts";
import { errorName, foldId, leaseOf, parseName, resultName } from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import type { ErrorRecord } from "../core/task.ts";
import { endTree } from "../host/process-tree.ts";
import { recordSettled } from "../journal/settled.ts";
import type { Telemetry } from "../journal/telemetry.ts";
import { type Claim, claimFromInbox, claimReady, putBack, readBytes } from "../mailbox/claim.ts";
import { requeue } from "../mailbox/requeue.ts";
import { retry } from "../mailbox/retry.ts";
import { newSettlement, settleAll } from "../mailbox/settle.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { ControlState } from "./control-state.ts";
import { type Plan, reopenPlanner } from "./plan-gate.ts";
import type { Pool } from "./pool.ts";
import type { Selection } from "./selection.ts";

export interface CommandContext {
  trays: Trays;
  backlog: Backlog;
  selection: Selection;
  pool: Pool;
  control: ControlState;
  telemetry: Telemetry;
  settings: Settings;
  newOwner: () => string;
  plan: Plan;
  /** True for `--once`: the number of workers is fixed. */
  isFixed: boolean;
  shareSlots(): void;
  wake(): void;
  stop(drain: boolean): void;
  hint(file: string): void;
}

/** @throws MailchuteError when the command cannot be carried out */
export function applyCommand(context: CommandContext, command: Command): object | Promise<object> {
  const { control, telemetry, trays } = context;
  const now = new Date(trays.clock.wallMs()).toISOString();
  switch (command.command) {
    case "pause":
      if (!control.current.paused) {
        control.change({ paused: true, paused_at: now, paused_by: command.id });
        telemetry.note("paused", { command: command.id });
      }
      context.pool.tellAll({ type: "control" });
      return { paused: true };
    case "resume":
      if (control.current.paused) {
        control.change({ paused: false, paused_at: null, paused_by: null });
        telemetry.note("resumed", { command: command.id });
      }
      context.pool.tellAll({ type: "control" });
      context.wake();
      return { paused: false };
    case "set-workers":
      return setWorkers(context, command);
    case "replan":
      reopenPlanner(context.plan, command.id);
      if (!control.current.replan_paused) {
        control.change({ replan_paused: true });
        telemetry.note("replan_started", { command: command.id });
      }
      context.wake();
      return { replanPaused: true };
    case "cancel":
      return cancel(context, command.args.node ?? "", command.args.final === true);
    case "retry": {
      const id = command.args.node ?? "";
      return retry(trays, id).then(() => {
        context.selection.inFlight.delete(foldId(id));
        context.hint(`${id}.json`);
        context.wake();
        return { retried: id };
      });
    }
    case "drain":
    case "stop": {
      const drain = command.command === "drain" || command.args.drain === true;
      context.stop(drain);
      return { stopping: true, drain };
    }
  }
}

function setWorkers(context: CommandContext, command: Command): object {
  const workers = command.args.workers ?? 0;
  if (context.isFixed)
    return {
      workers: context.settings.workers,
      ignored: "run --once has a fixed number of workers",
    };
  context.control.change({ max_workers: workers, max_workers_by: command.id });
  context.pool.setMaxSlots(workers);
  context.shareSlots();
  context.telemetry.note("workers_changed", { command: command.id, workers });
  context.wake();
  return { workers };
}

/** Waits this long, beyond the grace time, for a worker to let go (ms). */
const LET_GO_MS = 3000;

async function cancel(context: CommandContext, id: string, isFinal: boolean): Promise<object> {
  const { trays } = context;
  const live = findLive(trays, id);
  if (live?.name.stage === "w") return cancelRunning(context, live, isFinal);
  if (live?.name.stage === "ready" && isFinal) {
    const claim = claimReady(trays, live.name, context.newOwner());
    if (claim !== undefined) return endForGood(context, claim);
    return cancel(context, id, isFinal);
  }
  if (isFinal && trays.storage.look(join(trays.inbox, `${id}.json`)) !== undefined) {
    const claim = claimFromInbox(trays, id, 1, context.newOwner());
    if (claim !== undefined) return endForGood(context, claim);
    return cancel(context, id, isFinal);
  }
  const isThere =
    live !== undefined ||
    [
      join(trays.inbox, `${id}.json`),
      join(trays.outbox, resultName(id)),
      join(trays.failed, errorName(id)),
    ].some((path) => trays.storage.look(path) !== undefined);
  if (!isThere) throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, { id });
  if (!isFinal && (await takeBackNode(context, id, live))) return { cancelled: id };
  if (isFinal)
    throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has settled already`, { id });
  throw new ErrInvalidTransition(`${id} is not in flight`, {
    id,
    hint: "use `mailchute cancel` to end a waiting task for good",
  });
}

/** A node that is in progress but not running yet: its task waits for a worker. */
async function takeBackNode(
  context: CommandContext,
  id: string,
  live: Claim | undefined,
): Promise<boolean> {
  const { trays, plan } = context;
  if (!plan.isNode(id)) return false;
  if (live?.name.stage === "ready") {
    const claim = claimReady(trays, live.name, context.newOwner());
    if (claim === undefined) return false;
    requeue(trays, claim);
  }
  context.backlog.remove(id);
  context.selection.inFlight.delete(foldId(id));
  const isOut = await plan.withdraw(id);
  context.hint(`${id}.json`);
  context.wake();
  return isOut;
}

function findLive(trays: Trays, id: string): Claim | undefined {
  for (const file of trays.storage.list(trays.processing)) {
    const name = parseName(file);
    if (name?.id === id && (name.stage === "w" || name.stage === "ready"))
      return { name, file, path: join(trays.processing, file) };
  }
  return undefined;
}

async function cancelRunning(
  context: CommandContext,
  claim: Claim,
  isFinal: boolean,
): Promise<object> {
  const { trays, settings } = context;
  const { id } = claim.name;
  const lease = leaseOf(claim.name);
  const owner = claim.name.token.slice(0, claim.name.token.lastIndexOf("-"));
  if (context.pool.ownPrefixes().has(owner)) {
    context.pool.tellAll({ type: "cancel", leases: [lease], isFinal });
    const deadline = trays.clock.monotonicMs() + settings.grace_ms + LET_GO_MS;
    while (trays.storage.look(claim.path) !== undefined && trays.clock.monotonicMs() < deadline)
      await pause(10);
  }
  if (trays.storage.look(claim.path) !== undefined) {
    // A worker that we cannot speak to, or that does not answer. The lease is taken first: whoever held it is fenced, and
    // cannot settle the end of its program as a failure.
    const taken = claimReady(trays, claim.name, context.newOwner());
    if (taken !== undefined) {
      await endTree(lease, settings.grace_ms);
      const subject = { task_id: id, agent_id: "none", attempt: claim.name.attempt, lease };
      context.telemetry.lease("expired", { ...subject, acquiredAtMs: 0, pid: 0 });
      if (isFinal) return endForGood(context, taken);
      requeue(trays, taken);
      context.telemetry.event("cancelled", subject, {
        error: "cancelled; it waits in the inbox again",
      });
      context.telemetry.flush();
    }
  }
  context.selection.inFlight.delete(foldId(id));
  if (!isFinal && context.plan.isNode(id)) {
    context.backlog.remove(id);
    await context.plan.withdraw(id);
  }
  context.hint(`${id}.json`);
  context.wake();
  // The claim may be gone for another reason: a retry, a recovery from a dead supervisor's half-done cancel.
  if (isFinal && findLive(trays, id) !== undefined) return cancel(context, id, true);
  if (isFinal && trays.storage.look(join(trays.outbox, resultName(id))) !== undefined)
    throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has just completed`, { id });
  if (!isFinal && trays.storage.look(join(trays.outbox, resultName(id))) !== undefined) {
    throw new ErrInvalidTransition(`${id} is not in flight: it has just completed`, { id });
  }
  return isFinal ? { cancelled: id, final: true } : { cancelled: id };
}

/** Longest pause before a settlement that the disk refused is tried again (ms). */
const SETTLE_AGAIN_MS_MAX = 5000;
const READ_TRIES_MAX = 5;

/** Settles a task that nobody runs as cancelled. */
async function endForGood(context: CommandContext, claim: Claim): Promise<object> {
  const { trays, telemetry } = context;
  const { id } = claim.name;
  // Wherever it waited, also for its retry: a drain must not wait for it.
  context.backlog.remove(id);
  const now = wallSeconds(trays.clock);
  const decoded = await readForSure(trays, claim);
  const subject = {
    task_id: id,
    agent_id: "none",
    attempt: claim.name.attempt,
    lease: leaseOf(claim.name),
  };
  const record: ErrorRecord = {
    task_id: id,
    status: "failed",
    error: "cancelled before it ran",
    attempts: claim.name.attempt - 1,
    last_attempt_at: 0,
    failed_at: now,
    code: "ErrCancelled",
    kind: "cancelled",
    agent_id: subject.agent_id,
    lease: subject.lease,
    exit_code: null,
    signal: null,
    run: null,
  };
  const settlement = newSettlement(
    claim,
    "failed",
    encodeRecord(record, decoded?.text),
    claim.name.token,
  );
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, SETTLE_AGAIN_MS_MAX)) {
    await settleAll(trays, [settlement], (published) => {
      if (published.length === 0) return;
      recordSettled(telemetry, subject, {
        isCompleted: false,
        acquiredAtMs: 0,
        pid: process.pid,
        durationMs: null,
        error: record.error,
        kind: "cancelled",
      });
      telemetry.flush();
    });
    if (settlement.error === undefined) break;
    // The lease is ours, and we live: nobody else would finish what the disk refuses now.
    await pause(waitMs);
  }
  context.selection.inFlight.delete(foldId(id));
  context.wake();
  return { cancelled: id, final: true };
}

/**
 * The task that is to travel in its record; undefined when the file holds none.
 * @throws ErrIo when the disk does not give it: then the task waits again, because its bytes would be lost with the claim
 */
async function readForSure(trays: Trays, claim: Claim): Promise<DecodedTask | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return decodeTask(readBytes(trays, claim), claim.name.id);
    } catch (error) {
      if (error instanceof ErrInvalidTask) return undefined;
      if (tries === READ_TRIES_MAX) {
        putBack(trays, claim, 0, false);
        throw new ErrIo(`cannot read ${claim.name.id}: ${messageOf(error)}`, {
          id: claim.name.id,
          path: claim.path,
          cause: error,
          hint: "it waits as before; cancel it again when the disk can be read",
        });
      }
      await pause(50);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
