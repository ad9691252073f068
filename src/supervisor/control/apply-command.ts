/** What each command does to a running pool. Idempotent: a crash may have it applied twice. */
import type { ControlDocument } from "../../core/documents.ts";
import { ErrInvalidTransition } from "../../core/errors.ts";
import type { LifecycleEventName } from "../../core/events.ts";
import { foldId } from "../../core/names.ts";
import { hasRecord } from "../../journal/lookup.ts";
import { NO_SUBJECT } from "../../journal/telemetry.ts";
import { deadLetterOf, retry } from "../../mailbox/retry.ts";
import { cancel } from "./cancel.ts";
import type { CommandContext } from "./command-context.ts";
import type { ClaimedCommand } from "./command-inbox.ts";

/** @throws MailchuteError when the command cannot be carried out */
export function applyCommand(
  context: CommandContext,
  inHand: ClaimedCommand,
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
      tellOnce(context, inHand, "paused: nothing starts before `mailchute resume`");
      steer(context, inHand, "paused", () => {
        const now = new Date(context.trays.clock.wallMs()).toISOString();
        const { paused } = context.control.current;
        if (paused) return undefined;
        const launched = context.plan.unbegun();
        return { paused: true, paused_at: now, paused_by: command.id, launched };
      });
      return { paused: true };
    case "resume":
      tellOnce(context, inHand, "resumed");
      steer(context, inHand, "resumed", () =>
        context.control.current.paused
          ? { paused: false, paused_at: null, paused_by: null, launched: [] }
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

/** For the terminal; nothing when a crash has it carried out again. */
function tellOnce(context: CommandContext, { command, nonce }: ClaimedCommand, what: string): void {
  if (!context.control.isApplied(nonce)) context.notice(`${what} (command ${command.id})`);
}

/**
 * Changes what the pool was told and says so in the journal: once, also when a crash has it carried out twice. That it was
 * done is saved in one step with the change itself.
 * @param changeOf undefined: it is so already
 */
function steer(
  context: CommandContext,
  { command, nonce, isAgain }: ClaimedCommand,
  event: LifecycleEventName,
  changeOf: () => Partial<ControlDocument> | undefined,
  details: Record<string, unknown> = {},
): void {
  const { control, telemetry, tree, pool } = context;
  const wasApplied = control.isApplied(nonce);
  const change = wasApplied ? undefined : changeOf();
  if (change !== undefined) control.apply(nonce, change);
  // Who had claimed it may have died before, or after, it wrote the event.
  const isUntold = wasApplied && isAgain && !hasRecord(tree.events, nonce, event);
  if (change !== undefined || isUntold)
    telemetry.event(event, { ...NO_SUBJECT, lease: nonce }, { command: command.id, ...details });
  // Before it is acknowledged: it would not be written after that.
  telemetry.flush();
  pool.tellAll({ type: "control" });
  context.wake();
}

async function replan(context: CommandContext, inHand: ClaimedCommand): Promise<object> {
  const { control, plan } = context;
  await plan.started;
  if (!control.isApplied(inHand.nonce) && !(await plan.reopenPlanner()))
    throw new ErrInvalidTransition("there is no node plan-000 to replan", {
      id: inHand.command.id,
      hint: "replan needs a roadmap with a planner node plan-000",
    });
  steer(context, inHand, "replan_started", () =>
    control.current.replan_paused ? undefined : { replan_paused: true },
  );
  return { replanPaused: true };
}

function setWorkers(context: CommandContext, inHand: ClaimedCommand): object {
  const { id, args } = inHand.command;
  const workers = args.workers ?? 0;
  const { workers: given } = context.settings;
  const change = { max_workers: workers, max_workers_by: id, max_workers_over: given };
  const slots = `${workers} ${workers === 1 ? "slot" : "slots"}`;
  tellOnce(context, inHand, context.isFixed ? `${slots} from the next run on` : `${slots} now`);
  steer(context, inHand, "workers_changed", () => change, { workers });
  // Remembered for the next run.
  if (context.isFixed) return { workers: given, next_run: workers };
  context.pool.setMaxSlots(context.control.current.max_workers ?? given);
  context.shareSlots();
  return { workers };
}

/** Once: a dead letter that is not the one it was first carried out on has gone back already. */
async function retryFailed(context: CommandContext, inHand: ClaimedCommand): Promise<object> {
  const { trays } = context;
  const id = inHand.command.args.node ?? "";
  const letter = deadLetterOf(trays, id);
  if (inHand.subject === undefined || inHand.subject === letter) {
    if (inHand.subject === undefined && letter !== undefined) await inHand.noteSubject(letter);
    await retry(trays, id);
  }
  context.dispatcher.inFlight.delete(foldId(id));
  context.hint(`${id}.json`);
  context.wake();
  return { retried: id };
}
