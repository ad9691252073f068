/** The command `cancel`: stops a task and puts it back, or ends it for good, wherever it has got to. */
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../core/errors.ts";
import { foldId, leaseOf, leasesOfAttempt } from "../../core/names.ts";
import { endTree } from "../../host/process-tree.ts";
import { hasRecord } from "../../journal/lookup.ts";
import { type Claim, claimFromInbox, claimReady, newSubmission } from "../../mailbox/claim.ts";
import { freeRefusedId } from "../../mailbox/quarantine.ts";
import { requeue } from "../../mailbox/requeue.ts";
import { hasSettled } from "../../mailbox/settled-record.ts";
import { settleAsCancelled } from "./cancel-final.ts";
import type { CommandContext } from "./command-context.ts";
import type { ClaimedCommand } from "./command-inbox.ts";
import { findLive, findWaiting, waitForSettled } from "./find-task.ts";

/** Waits this long, beyond the grace time, for a worker to let go (ms). */
const LET_GO_MS = 3000;

/**
 * What was running, or waited, when the command came is meant: its lease is noted before anything is done to it. Carried out
 * again, the command does what is left to do about that one, and nothing to another that bears the name by then.
 */
export async function cancel(context: CommandContext, inHand: ClaimedCommand): Promise<object> {
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
  if (isWaiting && isFinal && !isSettled) return leasesOfAttempt(newSubmission(trays.clock, id, 1));
  if (live === undefined && !isWaiting && !isSettled && !plan.isNode(id))
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, { id });
  if (isFinal && isSettled)
    throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has settled already`, { id });
  const where = live?.name.stage === "ready" ? ": it is accepted, and waits for a worker" : "";
  throw new ErrInvalidTransition(`${id} is not in flight${where}`, {
    id,
    hint: plan.isNode(id)
      ? `to keep a node from running: mailchute node set-status ${id} blocked`
      : "use `mailchute cancel` to end a waiting task for good",
  });
}

/**
 * Takes a node's task that waits, for a worker or its retry, out of the mailbox; a node in progress is open then.
 * @returns false when it runs, or is none of the plan's
 */
export async function takeBackNode(
  context: CommandContext,
  id: string,
  isAgain = false,
): Promise<boolean> {
  const { trays, plan } = context;
  if (!plan.isNode(id) || plan.isForeignLive(id)) return false;
  const live = findLive(trays, id);
  if (live?.name.stage === "w") return false;
  plan.noteBegun(id);
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
  context.dispatcher.inFlight.delete(foldId(id));
  const isOut = await context.plan.withdraw(id);
  context.hint(`${id}.json`);
  context.wake();
  return isOut;
}

/** Stops it and puts it back into the inbox. */
async function cancelRun(
  context: CommandContext,
  id: string,
  lease: string,
  isAgain: boolean,
): Promise<void> {
  const { trays, telemetry, tree } = context;
  context.plan.noteBegun(id);
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
  const isUntold = taken !== undefined || (isAgain && !hasRecord(tree.events, lease, "cancelled"));
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
      const name = { ...newSubmission(trays.clock, id, 1, isBatch), submission };
      taken = claimFromInbox(trays, id, 1, context.newOwner(), name);
      if (taken === undefined && findLive(trays, id) === undefined && !hasSettled(trays, id))
        throw new ErrTaskNotFound(`the task ${JSON.stringify(id)} is gone`, { id });
    }
    if (taken === undefined) continue;
    // Of what waits, no lease was noted, only what it would begin with.
    const isRun = !lease.endsWith(".");
    await settleAsCancelled(context, taken, isRun ? "run" : live === undefined ? "inbox" : "ready");
    return;
  }
}

/** Takes the lease from its holder. Undefined when its worker has dealt with it, or another process was faster. */
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
      await wait(10);
  }
  // One that waits, or a worker that we cannot speak to, or that does not answer. The lease is taken first: its
  // holder is fenced, and cannot settle the end of its program as a failure.
  const taken = claimReady(trays, claim.name, context.newOwner());
  if (taken !== undefined && isRunning) {
    // Also what runs under the lease before, when it was taken to be cancelled by one who died over it.
    await endTree(leasesOfAttempt(claim.name), settings.grace_ms, undefined, context.tree.dir);
    const subject = { task_id: id, agent_id: "none", attempt: claim.name.attempt, lease };
    context.telemetry.lease("expired", subject);
  }
  // Wherever it waited, also for its retry: a drain must not wait for it.
  context.backlog.remove(id);
  context.dispatcher.inFlight.delete(foldId(id));
  context.wake();
  return taken;
}
