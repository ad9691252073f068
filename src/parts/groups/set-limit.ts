/** The command `set-limit`: changes a group or a limit of the settings while the pool runs. The change lasts until a reset. */
import type { LimitTarget } from "../../core/command.ts";
import { ErrInvalidCommand, ErrInvalidTransition } from "../../core/errors.ts";
import { suggest } from "../../core/suggest.ts";
import { type LimitChange, limitKey, TaskLimits } from "../../core/task-limits.ts";
import type { CommandHandler } from "../../supervisor/control/command-context.ts";
import { steer, tellOnce } from "../../supervisor/control/steer.ts";

export const setLimit: CommandHandler = (context, inHand) => {
  const { settings } = context.env;
  const { id, args } = inHand.command;
  const { limit: target } = args;
  if (target === undefined) throw new ErrInvalidCommand("set-limit needs args.limit", { id });
  const { kind, name, reset, ...change } = target;
  const known = Object.keys(kind === "group" ? settings.groups : settings.limits);
  if (!known.includes(name)) {
    const near = suggest(name, known);
    throw new ErrInvalidTransition(`no ${kind} ${name} is in config.yaml`, {
      id,
      hint: near === undefined ? `name it there (${kind}s)` : `did you mean ${near}?`,
    });
  }
  const { limit_changes: before } = context.control.current;
  const key = limitKey(kind, name);
  const { [key]: own = {}, ...others } = before;
  const next: LimitChange = reset === true ? {} : { ...own, ...change };
  if (next.paused === false) delete next.paused;
  const after = Object.keys(next).length === 0 ? others : { ...others, [key]: next };
  const inForce = new TaskLimits(settings, after).settingsOf(kind, name) ?? {};
  const fault = faultOf(target, inForce);
  if (fault !== undefined) throw new ErrInvalidCommand(fault, { id });
  tellOnce(context, inHand, `${kind} ${name}: ${textOf(inForce)}`);
  steer(
    context,
    inHand,
    "limits_changed",
    () => (JSON.stringify(after) === JSON.stringify(before) ? undefined : { limit_changes: after }),
    { kind, name, ...inForce },
  );
  return { [kind]: name, ...inForce };
};

function faultOf({ kind, name }: LimitTarget, inForce: LimitChange): string | undefined {
  return kind === "limit" && inForce.burst !== undefined && inForce.rate === undefined
    ? `limit ${name} has no rate, so it has no burst`
    : undefined;
}

function textOf({ slots, rate, burst, paused }: LimitChange): string {
  return (
    [
      ...(paused === true ? ["paused"] : []),
      ...(slots === undefined ? [] : [`${slots} ${slots === 1 ? "slot" : "slots"}`]),
      ...(rate === undefined ? [] : [`rate ${rate}, burst ${burst ?? 1}`]),
    ].join(", ") || "no limit"
  );
}
