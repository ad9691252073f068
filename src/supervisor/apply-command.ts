/** What each command does to a running pool. Idempotent: a crash may have it applied twice. */
import { join } from "node:path";
import { decodeRecord } from "../codec/records.ts";
import { type DecodedTask, decodeTask } from "../codec/task-codec.ts";
import type { Backlog } from "../core/backlog.ts";
import type { BatchCounts } from "../core/batch.ts";
import type { ControlDocument } from "../core/documents.ts";
import {
  ErrInvalidTask,
  ErrInvalidTransition,
  ErrIo,
  ErrTaskNotFound,
  messageOf,
} from "../core/errors.ts";
import type { LifecycleEventName } from "../core/events.ts";
import {
  errorName,
  foldId,
  inboxName,
  leaseOf,
  leasesOfAttempt,
  parseName,
  resultName,
} from "../core/names.ts";
import type { Settings } from "../core/settings.ts";
import { endTree } from "../host/process-tree.ts";
import { hasRecord } from "../journal/lookup.ts";
import { recordSettled } from "../journal/settled.ts";
import { NO_SUBJECT, type Telemetry } from "../journal/telemetry.ts";
import {
  type Claim,
  claimFromInbox,
  claimReady,
  newSubmission,
  putBack,
  readBytes,
} from "../mailbox/claim.ts";
import { newDeadLetter } from "../mailbox/dead-letter.ts";
import { freeRefusedId } from "../mailbox/quarantine.ts";
import { gatherCounts } from "../mailbox/recover.ts";
import { requeue } from "../mailbox/requeue.ts";
import { deadLetterOf, retry } from "../mailbox/retry.ts";
import { settleAll } from "../mailbox/settle.ts";
import { isRefusal } from "../mailbox/submit.ts";
import type { Trays } from "../mailbox/trays.ts";
import type { CommandInHand } from "./commands.ts";
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
  /** Path of the journal of events. */
  eventsPath: string;
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
export function applyCommand(
  context: CommandContext,
  inHand: CommandInHand,
): object | Promise<object> {
  const { command } = inHand;
  const isAboutTask = command.command === "cancel" || command.command === "retry";
  if (isAboutTask && !context.settings.mailbox_enabled)
    throw new ErrInvalidTransition("the task mailbox is switched off", {
      id: command.id,
      hint: "set mailbox_enabled: true and start again",
    });
  switch (command.command) {
    case "pause":
      steer(context, inHand, "paused", () => {
        const now = new Date(context.trays.clock.wallMs()).toISOString();
        const { paused } = context.control.current;
        return paused ? undefined : { paused: true, paused_at: now, paused_by: command.id };
      });
      return { paused: true };
    case "resume":
      steer(context, inHand, "resumed", () =>
        context.control.current.paused
          ? { paused: false, paused_at: null, paused_by: null }
          : undefined,
      );
      return { paused: false };
    case "set-workers":
      return setWorkers(context, inHand);
    case "replan":
      return replan(context, inHand);
    case "cancel":
      return cancel(context, inHand);
    case "retry":
      return retryFailed(context, inHand);
    case "drain":
    case "stop": {
      const drain = command.command === "drain" || command.args.drain === true;
      context.stop(drain);
      return { stopping: true, drain };
    }
  }
}

/**
 * Changes what the pool was told and says so in the journal: once, also when a crash has it carried out twice. That it was
 * done is saved in one step with the change itself.
 * @param changeOf undefined: it is so already
 */
function steer(
  context: CommandContext,
  { command, nonce, isAgain }: CommandInHand,
  event: LifecycleEventName,
  changeOf: () => Partial<ControlDocument> | undefined,
  details: Record<string, unknown> = {},
): void {
  const { control, telemetry, eventsPath, pool } = context;
  const wasApplied = control.isApplied(nonce);
  const change = wasApplied ? undefined : changeOf();
  if (change !== undefined) control.apply(nonce, change);
  // Who had claimed it may have died before, or after, it wrote the event.
  const isUntold = wasApplied && isAgain && !hasRecord(eventsPath, nonce, event);
  if (change !== undefined || isUntold)
    telemetry.event(event, { ...NO_SUBJECT, lease: nonce }, { command: command.id, ...details });
  // Before it is acknowledged: nobody would write it after that.
  telemetry.flush();
  pool.tellAll({ type: "control" });
  context.wake();
}

async function replan(context: CommandContext, inHand: CommandInHand): Promise<object> {
  const { control, plan } = context;
  await plan.started;
  if (!control.isApplied(inHand.nonce)) await reopenPlanner(plan, inHand.command.id);
  steer(context, inHand, "replan_started", () =>
    control.current.replan_paused ? undefined : { replan_paused: true },
  );
  return { replanPaused: true };
}

function setWorkers(context: CommandContext, inHand: CommandInHand): object {
  const { id, args } = inHand.command;
  const workers = args.workers ?? 0;
  if (context.isFixed)
    return {
      workers: context.settings.workers,
      ignored: "run --once has a fixed number of workers",
    };
  const change = { max_workers: workers, max_workers_by: id };
  steer(context, inHand, "workers_changed", () => change, { workers });
  const { max_workers: slots } = context.control.current;
  context.pool.setMaxSlots(slots ?? context.settings.workers);
  context.shareSlots();
  return { workers };
}

/** Once: a dead letter that is not the one it was first carried out on has gone back already. */
async function retryFailed(context: CommandContext, inHand: CommandInHand): Promise<object> {
  const { trays } = context;
  const id = inHand.command.args.node ?? "";
  const letter = deadLetterOf(trays, id);
  if (inHand.subject === undefined || inHand.subject === letter) {
    if (inHand.subject === undefined && letter !== undefined) await inHand.noteSubject(letter);
    await retry(trays, id);
  }
  context.selection.inFlight.delete(foldId(id));
  context.hint(`${id}.json`);
  context.wake();
  return { retried: id };
}

/** Waits this long, beyond the grace time, for a worker to let go (ms). */
const LET_GO_MS = 3000;
/** And this long for a committed record to be published (ms). */
const PUBLISH_MS_MAX = 10_000;

/**
 * What was running, or waited, when the command came is meant: its lease is noted before anything is done to it. Carried out
 * again, the command does what is left to do about that one, and nothing to another that bears the name by then.
 */
async function cancel(context: CommandContext, inHand: CommandInHand): Promise<object> {
  const { node: id = "", final: isFinal = false } = inHand.command.args;
  let lease = inHand.subject;
  // What runs is taken at once: at the start, before recovery gives it back and the plan is read.
  if (lease === undefined && findLive(context.trays, id)?.name.stage !== "w") {
    await context.plan.started;
    if (!isFinal && (await takeBackNode(context, id, inHand.isAgain))) return { cancelled: id };
  }
  if (lease === undefined) {
    lease = findSubject(context, id, isFinal);
    await inHand.noteSubject(lease);
  }
  if (isFinal) await cancelForGood(context, id, lease);
  else await cancelRun(context, id, lease, inHand.isAgain);
  return isFinal ? { cancelled: id, final: true } : { cancelled: id };
}

/**
 * The lease of what is to be cancelled; of what waits, what it begins with.
 * @throws ErrTaskNotFound, ErrInvalidTransition when there is nothing to cancel
 */
function findSubject({ trays, plan }: CommandContext, id: string, isFinal: boolean): string {
  const live = findLive(trays, id);
  if (live?.name.stage === "w") return leaseOf(live.name);
  if (live !== undefined && isFinal) return leasesOfAttempt(live.name);
  const isWaiting = findWaiting(trays, id) !== undefined;
  const isSettled = hasSettled(trays, id);
  // With a record beside it, what waits is a duplicate, and none of ours to end.
  if (isWaiting && isFinal && !isSettled) return leasesOfAttempt(newSubmission(id, 1));
  if (live === undefined && !isWaiting && !isSettled && !plan.isNode(id))
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, { id });
  if (isFinal && isSettled)
    throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has settled already`, { id });
  throw new ErrInvalidTransition(`${id} is not in flight`, {
    id,
    hint: plan.isNode(id)
      ? `to keep a node from running: mailchute node set-status ${id} blocked`
      : "use `mailchute cancel` to end a waiting task for good",
  });
}

/** A node that is in progress but not running yet: its task waits for a worker. */
async function takeBackNode(
  context: CommandContext,
  id: string,
  isAgain: boolean,
): Promise<boolean> {
  const { trays, plan } = context;
  if (!plan.isNode(id)) return false;
  const live = findLive(trays, id);
  if (live?.name.stage === "w") return false;
  if (live?.name.stage === "ready") {
    const claim = claimReady(trays, live.name, context.newOwner());
    if (claim === undefined) return false;
    requeue(trays, claim);
  }
  const isOut = await withdrawNode(context, id);
  return isOut || (isAgain && plan.isOpen(id));
}

/** A node whose task was put back is open again. @returns false when its task does not wait in the inbox */
async function withdrawNode(context: CommandContext, id: string): Promise<boolean> {
  context.backlog.remove(id);
  context.selection.inFlight.delete(foldId(id));
  const isOut = await context.plan.withdraw(id);
  context.hint(`${id}.json`);
  context.wake();
  return isOut;
}

function hasSettled(trays: Trays, id: string): boolean {
  const failed = join(trays.failed, errorName(id));
  if (trays.storage.look(join(trays.outbox, resultName(id))) !== undefined) return true;
  return trays.storage.look(failed) !== undefined && !isRefusal(trays, failed);
}

/** Stops it and puts it back into the inbox. */
async function cancelRun(
  context: CommandContext,
  id: string,
  lease: string,
  isAgain: boolean,
): Promise<void> {
  const { trays, telemetry, eventsPath } = context;
  const live = findLive(trays, id);
  const isOurs = live !== undefined && lease.startsWith(`${live.name.submission}.`);
  const taken = isOurs ? await take(context, live, false) : undefined;
  if (taken !== undefined) requeue(trays, taken);
  await context.plan.started;
  if (context.plan.isNode(id)) await withdrawNode(context, id);
  context.hint(`${id}.json`);
  const settled = await waitForSettled(trays, id, lease);
  if (settled !== undefined)
    throw new ErrInvalidTransition(`${id} is not in flight: it has just ${settled}`, { id });
  // A worker that put it back itself says so itself; one who died over this command may not have come to it.
  const isUntold = taken !== undefined || (isAgain && !hasRecord(eventsPath, lease, "cancelled"));
  if (!isUntold) return;
  const attempt = Number(lease.split(".")[1]);
  const subject = { task_id: id, agent_id: "none", attempt, lease };
  telemetry.event("cancelled", subject, { error: "cancelled; it waits in the inbox again" });
  telemetry.flush();
}

/** Ends it as cancelled, wherever it has got to. */
async function cancelForGood(context: CommandContext, id: string, lease: string): Promise<void> {
  const { trays } = context;
  for (;;) {
    const live = findLive(trays, id);
    const settled = await waitForSettled(trays, id, lease);
    if (settled === "cancelled") return;
    if (settled !== undefined)
      throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has just ${settled}`, { id });
    let taken: Claim | undefined;
    if (live !== undefined) taken = await take(context, live, true);
    else if (hasSettled(trays, id))
      throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has settled already`, { id });
    else {
      freeRefusedId(trays, id);
      const submission = lease.slice(0, lease.indexOf("."));
      const isBatch = findWaiting(trays, id)?.isBatch === true;
      const name = { ...newSubmission(id, 1, isBatch), submission };
      taken = claimFromInbox(trays, id, 1, context.newOwner(), name);
      if (taken === undefined && findLive(trays, id) === undefined && !hasSettled(trays, id))
        throw new ErrTaskNotFound(`the task ${JSON.stringify(id)} is gone`, { id });
    }
    if (taken === undefined) continue;
    // Of what waits, no lease was noted, only what it would begin with.
    await endForGood(context, taken, !lease.endsWith("."));
    return;
  }
}

/**
 * The same, when it is known: what was committed by one who died over it is published by recovery.
 * @throws ErrInvalidTransition when that takes too long
 */
async function waitForSettled(
  trays: Trays,
  id: string,
  lease: string,
): Promise<ReturnType<typeof findSettled>> {
  const head = `${id}@${lease.slice(0, lease.indexOf(".") + 1)}`;
  const deadline = trays.clock.monotonicMs() + PUBLISH_MS_MAX;
  for (;;) {
    const isCommitted = trays.storage.list(trays.processing).some((file) => {
      const stage = file.startsWith(head) ? parseName(file)?.stage : undefined;
      return stage === "ok" || stage === "err";
    });
    if (!isCommitted) return findSettled(trays, id, lease);
    if (trays.clock.monotonicMs() > deadline)
      throw new ErrInvalidTransition(`${id} has ended; its record is being published`, { id });
    await pause(10);
  }
}

/** How the submission of this lease ended; undefined when its record is not there, or that of another. */
function findSettled(
  trays: Trays,
  id: string,
  lease: string,
): "completed" | "failed" | "cancelled" | undefined {
  const submission = lease.slice(0, lease.indexOf(".") + 1);
  for (const path of [join(trays.outbox, resultName(id)), join(trays.failed, errorName(id))]) {
    if (trays.storage.look(path) === undefined) continue;
    const { bytes } = trays.storage.read(path, Number.MAX_SAFE_INTEGER);
    const record = bytes === undefined ? undefined : decodeRecord(bytes)?.record;
    if (record === undefined || !String(record.lease).startsWith(submission)) continue;
    return record.status === "failed" && record.kind === "cancelled" ? "cancelled" : record.status;
  }
  return undefined;
}

function findWaiting(trays: Trays, id: string): { id: string; isBatch?: true } | undefined {
  const names = [{ id }, { id, isBatch: true as const }];
  return names.find((name) => trays.storage.look(join(trays.inbox, inboxName(name))) !== undefined);
}

function findLive(trays: Trays, id: string): Claim | undefined {
  for (const file of trays.storage.list(trays.processing)) {
    const name = parseName(file);
    if (name?.id === id && (name.stage === "w" || name.stage === "ready"))
      return { name, file, path: join(trays.processing, file) };
  }
  return undefined;
}

/** Takes it from whoever has it. Undefined when its worker has dealt with it, or somebody else was faster. */
async function take(
  context: CommandContext,
  claim: Claim,
  isFinal: boolean,
): Promise<Claim | undefined> {
  const { trays, settings } = context;
  const { id } = claim.name;
  const lease = leaseOf(claim.name);
  const isRunning = claim.name.stage === "w";
  const owner = claim.name.token.slice(0, claim.name.token.lastIndexOf("-"));
  if (isRunning && context.pool.ownPrefixes().has(owner)) {
    context.pool.tellAll({ type: "cancel", leases: [lease], isFinal });
    const deadline = trays.clock.monotonicMs() + settings.grace_ms + LET_GO_MS;
    while (trays.storage.look(claim.path) !== undefined && trays.clock.monotonicMs() < deadline)
      await pause(10);
  }
  // One that waits, or a worker that we cannot speak to, or that does not answer. The lease is taken first: whoever held
  // it is fenced, and cannot settle the end of its program as a failure.
  const taken = claimReady(trays, claim.name, context.newOwner());
  if (taken !== undefined && isRunning) {
    // Also what runs under the lease before, when it was taken to be cancelled by one who died over it.
    await endTree(leasesOfAttempt(claim.name), settings.grace_ms);
    const subject = { task_id: id, agent_id: "none", attempt: claim.name.attempt, lease };
    context.telemetry.lease("expired", { ...subject, acquiredAtMs: 0, pid: 0 });
  }
  // Wherever it waited, also for its retry: a drain must not wait for it.
  context.backlog.remove(id);
  context.selection.inFlight.delete(foldId(id));
  context.wake();
  return taken;
}

/** Longest pause before a settlement that the disk refused is tried again (ms). */
const SETTLE_AGAIN_MS_MAX = 5000;
const READ_TRIES_MAX = 5;

/** Settles a task that nobody runs any more as cancelled. @param didRun true when this attempt was under way */
async function endForGood(context: CommandContext, claim: Claim, didRun: boolean): Promise<void> {
  const { trays, telemetry } = context;
  const { id } = claim.name;
  context.backlog.remove(id);
  const isBatch = claim.name.isBatch === true;
  const decoded = isBatch ? undefined : await readForSure(trays, claim);
  // What its lines came to before is kept: a retry goes on from there.
  const batch = isBatch ? await gatherForSure(trays, claim) : undefined;
  const { attempt } = claim.name;
  const subject = { task_id: id, agent_id: "none", attempt, lease: leaseOf(claim.name) };
  const facts = {
    error: didRun ? "cancelled while it ran" : "cancelled before it ran",
    code: "ErrCancelled",
    kind: "cancelled" as const,
    agentId: subject.agent_id,
    attempts: didRun ? attempt : attempt - 1,
    lastAttemptAt: 0,
    batch,
  };
  const settlement = newDeadLetter(trays, claim, facts, decoded);
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, SETTLE_AGAIN_MS_MAX)) {
    await settleAll(trays, [settlement], ([settled]) => {
      if (settled === undefined) return;
      const details = {
        isCompleted: false,
        acquiredAtMs: 0,
        pid: process.pid,
        durationMs: null,
        error: facts.error,
        kind: "cancelled",
      };
      recordSettled(telemetry, subject, details, settled.mayBeRecorded);
      telemetry.flush();
    });
    if (settlement.error === undefined) break;
    // The lease is ours, and we live: nobody else would finish what the disk refuses now.
    await pause(waitMs);
  }
  context.selection.inFlight.delete(foldId(id));
  context.wake();
}

/** @throws a system error; then the batch waits again, with all that its lines came to */
async function gatherForSure(trays: Trays, claim: Claim): Promise<BatchCounts> {
  try {
    return await gatherCounts(trays, claim.name);
  } catch (error) {
    putBack(trays, claim, 0, false);
    throw error;
  }
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
