/** How a command changes what the pool was told: once, also when a crash has it carried out twice. */
import type { ControlDocument } from "../../core/documents.ts";
import type { LifecycleEventName } from "../../core/events.ts";
import { hasRecord } from "../../journal/lookup.ts";
import { NO_SUBJECT } from "../../journal/telemetry.ts";
import type { CommandContext } from "./command-context.ts";
import type { ClaimedCommand } from "./command-inbox.ts";

/** For the terminal; nothing when a crash has it carried out again. */
export function tellOnce(
  { control, env }: CommandContext,
  { command, nonce }: ClaimedCommand,
  what: string,
): void {
  if (!control.isApplied(nonce)) env.alerts.notice(`${what} (command ${command.id})`);
}

/**
 * Changes what the pool was told and writes the event. That it was done is saved in one step with the change itself.
 * @param changeOf undefined: it is so already
 */
export function steer(
  { control, env, queue }: CommandContext,
  { command, nonce, isAgain }: ClaimedCommand,
  event: LifecycleEventName,
  changeOf: () => Partial<ControlDocument> | undefined,
  details: Record<string, unknown> = {},
): void {
  const { telemetry, tree } = env;
  const wasApplied = control.isApplied(nonce);
  const change = wasApplied ? undefined : changeOf();
  if (change !== undefined) control.apply(nonce, change);
  // The process that claimed it before may have died before or after it wrote the event.
  const isUntold = wasApplied && isAgain && !hasRecord(tree.events, nonce, event);
  if (change !== undefined || isUntold)
    telemetry.event(event, { ...NO_SUBJECT, lease: nonce }, { command: command.id, ...details });
  // Before it is acknowledged: it would not be written after that.
  telemetry.flush();
  queue.pool.workers.tellAll({ type: "control" });
  env.facts.emit("processing:changed");
}
