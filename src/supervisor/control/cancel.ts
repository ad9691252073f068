/** The command `cancel`: stops a task and puts it back, or ends it for good, in whatever state it is. */
import { setTimeout as wait } from "node:timers/promises";
import { ErrInvalidTransition, ErrTaskNotFound } from "../../core/errors.ts";
import {
  inboxName,
  isUnclaimed,
  leaseOf,
  leasesOfAttempt,
  prefixOf,
  submissionOf,
} from "../../core/names.ts";
import { endTree } from "../../host/process-tree.ts";
import { hasRecord } from "../../journal/lookup.ts";
import {
  type Claim,
  claimFromInbox,
  claimReady,
  newSubmission,
  readClaimIfThere,
} from "../../mailbox/claim/claim.ts";
import { requeue } from "../../mailbox/claim/requeue.ts";
import { closeTickets } from "../../mailbox/files/tickets.ts";
import { pathIn, type Trays } from "../../mailbox/files/trays.ts";
import { findClaim, findWaiting, isBeingSettled } from "../../mailbox/find/locate.ts";
import { hasSettled, recordOfSubmission } from "../../mailbox/find/settled-record.ts";
import { freeRefusedId } from "../../mailbox/settle/quarantine.ts";
import { settleAsCancelled } from "./cancel-final.ts";
import type { CommandContext, CommandHandler } from "./command-context.ts";

/** How long a worker may take to give up the task, beyond the grace time (ms). */
const LET_GO_MS = 3000;
/** How long a committed record may take to be published (ms). */
const PUBLISH_MS_MAX = 10_000;

/**
 * Cancels the run, or waiting task, that existed when the command came. The command writes down its lease before it changes
 * anything. If the command is carried out again after a crash, it finishes with that run, and does nothing to a later task of the
 * same name.
 */
export const cancel: CommandHandler = async (context, inHand) => {
  const { env, parts } = context;
  const { node: id = "", final: isFinal = false } = inHand.command.args;
  let lease = inHand.subject;
  // A running task is taken at once: at the start this must happen before recovery gives it back and the plan is read.
  if (lease === undefined && findClaim(env.trays, id)?.name.stage !== "w") {
    await parts.started;
    const isOut = !isFinal && (await parts.ownerOf(id)?.takeBack(id, inHand.isAgain)) === true;
    if (isOut) return { cancelled: id };
  }
  if (lease === undefined) {
    lease = findSubject(context, id, isFinal);
    await inHand.noteSubject(lease);
  }
  if (isFinal) await cancelForGood(context, id, lease);
  else await cancelRun(context, id, lease, inHand.isAgain);
  return isFinal ? { cancelled: id, final: true } : { cancelled: id };
};

/**
 * The lease to cancel; for a waiting task, the prefix of its next lease.
 * @throws ErrTaskNotFound, ErrInvalidTransition when there is nothing to cancel
 */
function findSubject({ env, parts }: CommandContext, id: string, isFinal: boolean): string {
  const { trays } = env;
  const live = findClaim(trays, id);
  if (live?.name.stage === "w") return leaseOf(live.name);
  if (live !== undefined && isFinal) return leasesOfAttempt(live.name);
  const isWaiting = findWaiting(trays, id) !== undefined;
  const isSettled = hasSettled(trays, id);
  // If the id has a record, the waiting file is a duplicate, and cancelling does not end it.
  if (isWaiting && isFinal && !isSettled) return leasesOfAttempt(newSubmission(trays.clock, id, 1));
  const owner = parts.ownerOf(id);
  if (live === undefined && !isWaiting && !isSettled && owner === undefined)
    throw new ErrTaskNotFound(`no task ${JSON.stringify(id)}`, { id });
  if (isFinal && isSettled)
    throw new ErrInvalidTransition(`task ${JSON.stringify(id)} has settled already`, { id });
  const where = isUnclaimed(live?.name) ? ": it is accepted, and waits" : "";
  throw new ErrInvalidTransition(`${id} is not in flight${where}`, {
    id,
    hint:
      owner !== undefined
        ? `to keep a node from running: mailchute node set-status ${id} blocked`
        : "use `mailchute cancel` to end a waiting task for good",
  });
}

/** Stops the run and puts the task back into the inbox. */
async function cancelRun(
  context: CommandContext,
  id: string,
  lease: string,
  isAgain: boolean,
): Promise<void> {
  const { trays, telemetry, tree, facts } = context.env;
  facts.emit("task:begun", id);
  const live = findClaim(trays, id);
  const isOurs = live !== undefined && lease.startsWith(`${live.name.submission}.`);
  const group = isOurs ? readClaimIfThere(trays, live)?.task.group : undefined;
  const taken = isOurs ? await take(context, live, false) : undefined;
  if (taken !== undefined) requeue(trays, taken);
  await context.parts.started;
  await context.parts.ownerOf(id)?.withdraw(id);
  facts.emit("inbox:written", `${id}.json`);
  const settled = await waitForSettled(trays, id, lease);
  if (settled !== undefined)
    throw new ErrInvalidTransition(`${id} is not in flight: it has just ${settled}`, { id });
  // A worker that put the task back has written the event itself. A worker that died because of this command may not have written
  // it.
  const isUntold = taken !== undefined || (isAgain && !hasRecord(tree.events, lease, "cancelled"));
  if (!isUntold) return;
  const attempt = Number(lease.split(".")[1]);
  const subject = { task_id: id, agent_id: "none", attempt, lease, group };
  telemetry.event("cancelled", subject, { error: "cancelled; it waits in the inbox again" });
  telemetry.flush();
}

/** Ends the task as cancelled, whatever its state is now. */
async function cancelForGood(context: CommandContext, id: string, lease: string): Promise<void> {
  const { trays } = context.env;
  for (;;) {
    const live = findClaim(trays, id);
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
      const waiting = trays.storage.look(pathIn(trays.inbox, inboxName(name)));
      if (waiting !== undefined && waiting.nlink > 1) closeTickets(trays, id, waiting.ino);
      taken = claimFromInbox(trays, id, 1, context.newOwner(), name);
      if (taken === undefined && findClaim(trays, id) === undefined && !hasSettled(trays, id))
        throw new ErrTaskNotFound(`the task ${JSON.stringify(id)} is gone`, { id });
    }
    if (taken === undefined) continue;
    // For a waiting task, only the prefix of its next lease was written down. It ends with a dot.
    const isRun = !lease.endsWith(".");
    const from = isRun ? "run" : live === undefined ? "inbox" : "ready";
    await settleAsCancelled(context, taken, from, live?.name);
    return;
  }
}

/**
 * How the submission of this lease ended; undefined when it has no record. Recovery first publishes a record whose settler died
 * after its commit.
 * @throws ErrInvalidTransition when that takes too long
 */
async function waitForSettled(
  trays: Trays,
  id: string,
  lease: string,
): Promise<"completed" | "failed" | "cancelled" | undefined> {
  const subject = { id, submission: submissionOf(lease) };
  const deadline = trays.clock.monotonicMs() + PUBLISH_MS_MAX;
  while (isBeingSettled(trays, prefixOf(subject))) {
    if (trays.clock.monotonicMs() > deadline)
      throw new ErrInvalidTransition(`${id} has ended; its record is being published`, { id });
    await wait(10);
  }
  const record = recordOfSubmission(trays, subject)?.record;
  return record?.status === "failed" && record.kind === "cancelled" ? "cancelled" : record?.status;
}

/** Takes the lease from its holder. Undefined when its worker has ended the task, or another process was faster. */
async function take(
  context: CommandContext,
  claim: Claim,
  isFinal: boolean,
): Promise<Claim | undefined> {
  const { env, queue } = context;
  const { trays, settings } = env;
  const { id } = claim.name;
  const lease = leaseOf(claim.name);
  const isRunning = claim.name.stage === "w";
  const { attempt } = claim.name;
  const group = isRunning ? readClaimIfThere(trays, claim)?.task.group : undefined;
  const owner = claim.name.token.slice(0, claim.name.token.lastIndexOf("-"));
  if (isRunning && queue.pool.workers.ownPrefixes().has(owner)) {
    queue.pool.workers.tellAll({ type: "cancel", leases: [lease], isFinal });
    const deadline = trays.clock.monotonicMs() + settings.grace_ms + LET_GO_MS;
    while (trays.storage.look(claim.path) !== undefined && trays.clock.monotonicMs() < deadline)
      await wait(10);
  }
  // The task waits, or its worker cannot be reached or does not answer. Take the lease first: its holder is then fenced, and cannot
  // settle the killed program as a failure.
  const taken = claimReady(trays, claim.name, context.newOwner());
  if (taken !== undefined && isRunning) {
    // An earlier cancel may have died after taking the lease: end also the programs that run under the lease before that.
    await endTree(leasesOfAttempt(claim.name), settings.grace_ms, undefined, env.tree.dir);
    const subject = { task_id: id, agent_id: "none", attempt, lease, group };
    env.telemetry.lease("expired", subject);
  }
  // Remove the task wherever it waited, even for its retry: a drain must not wait for it.
  queue.backlog.remove(id);
  queue.accepted.delete(id);
  env.facts.emit("processing:changed");
  return taken;
}
