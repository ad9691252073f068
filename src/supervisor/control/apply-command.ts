/** Maps each command to its effect on a running pool. Every effect is idempotent: after a crash a command may be applied twice. */
import { ErrInvalidTransition } from "../../core/errors.ts";
import { cancel } from "./cancel.ts";
import type { CommandContext, CommandHandler, CommandTable } from "./command-context.ts";
import type { ClaimedCommand } from "./command-inbox.ts";
import { edit } from "./edit.ts";
import { interrupt } from "./interrupt.ts";
import { pause, resume } from "./pause.ts";
import { retry } from "./retry.ts";
import { setWorkers } from "./set-workers.ts";

const stop: CommandHandler = ({ run }, { command }) => {
  const drain = command.command === "drain" || command.args.drain === true;
  run.stop(drain);
  return { stopping: true, drain };
};

/** Makes the table to which parts add their commands. */
export function makeCommandTable(): CommandTable {
  return new Map([
    ["pause", pause],
    ["resume", resume],
    ["set-workers", setWorkers],
    ["cancel", cancel],
    ["interrupt", interrupt],
    ["edit", edit],
    ["retry", retry],
    ["drain", stop],
    ["stop", stop],
  ]);
}

/** @throws MailchuteError when the command cannot be carried out */
export function applyCommand(
  table: CommandTable,
  context: CommandContext,
  inHand: ClaimedCommand,
): object | Promise<object> {
  const { id, command } = inHand.command;
  const isAboutTask = ["cancel", "interrupt", "edit", "retry"].includes(command);
  if (isAboutTask && !context.env.settings.mailbox_enabled)
    throw new ErrInvalidTransition("the task mailbox is switched off", {
      id,
      hint: "set mailbox_enabled: true and start again",
    });
  const handler = table.get(command);
  if (handler === undefined)
    throw new ErrInvalidTransition(`nothing here carries out ${command}`, { id });
  return handler(context, inHand);
}
