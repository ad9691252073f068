/** The options and the output of verbs that send one command to the supervisor. */

import {
  awaitAcknowledgement,
  findSupervisor,
  sendCommand,
} from "../../mailbox/commands/send-command.ts";
import { resultText } from "../../text/command-result.ts";
import { type Context, durationOption, type OptionTable } from "./command-spec.ts";
import { EXIT } from "./exit-codes.ts";
import { existingTree } from "./options.ts";

const ACK_TIMEOUT_MS = 30_000;
export const WAIT = { type: "flag", help: "wait for the effect" } as const;
export const TIMEOUT = durationOption("S", "with --wait: give up after this long (default: 30 s)");

/** Sends one command; prints its id, or with --wait its effect. */
export async function giveCommand(
  ctx: Context<OptionTable>,
  command: string,
  args: Record<string, unknown>,
): Promise<number> {
  existingTree(ctx);
  const sent = await sendCommand(ctx.stateDir, command, args);
  if (ctx.options["wait"] !== true) {
    if (ctx.json) ctx.out.json(sent);
    else ctx.out.line(sent.id);
    noteIfAlone(ctx);
    return EXIT.ok;
  }
  const result = await awaitAcknowledgement(ctx.stateDir, sent.id, timeoutOf(ctx));
  if (result === undefined) {
    ctx.out.note(`${sent.id}: no answer in time`);
    return EXIT.waitTimedOut;
  }
  if (ctx.json) ctx.out.json({ ...sent, result });
  else ctx.out.line(resultText(result));
  return EXIT.ok;
}

/** How long --wait waits (ms). */
export function timeoutOf(ctx: Context<OptionTable>): number {
  return (ctx.options["timeout"] as number | undefined) ?? ACK_TIMEOUT_MS;
}

/** Prints a note when no supervisor runs that could carry out the command. */
export function noteIfAlone(ctx: Context<OptionTable>): void {
  if (findSupervisor(ctx.stateDir) === undefined)
    ctx.out.note("no supervisor runs here; the command waits for the next one");
}
