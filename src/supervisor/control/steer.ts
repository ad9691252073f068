/** Applies a command to the state of the pool exactly once, even when a crash causes it to be carried out twice. */

import type { LifecycleEventName } from "../../core/events.ts";
import type { ControlDocument } from "../../core/saved-documents.ts";
import { hasRecord } from "../../journal/lookup.ts";
import { NO_SUBJECT } from "../../journal/telemetry.ts";
import type { CommandContext } from "./command-context.ts";
import type { ClaimedCommand } from "./command-inbox.ts";

/** Prints a line on the terminal; prints nothing when the command is carried out again after a crash. */
export function tellOnce(
  { control, env }: CommandContext,
  { command, nonce }: ClaimedCommand,
  what: string,
): void {
  if (!control.isApplied(nonce)) env.alerts.notice(`${what} (command ${command.id})`);
}

/**
 * Changes the state of the pool and writes the event. The note that the command was applied is saved in one step with the change.
 * @param changeOf returns undefined when nothing has to change
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
  // Write it before the command is acknowledged: after that it would not be written again.
  telemetry.flush();
  queue.pool.workers.tellAll({ type: "control" });
  env.facts.emit("processing:changed");
}
