/** Carries out one action of `chat` and prints the result. */

import type { Context } from "../../cli/shell/command-spec.ts";
import { describeError } from "../../cli/shell/error-text.ts";
import { existingTree, openMailbox, SHARED_OPTIONS } from "../../cli/shell/options.ts";
import { parseArguments } from "../../cli/shell/parse.ts";
import { loadCommand } from "../../cli/shell/registry.ts";
import {
  awaitAcknowledgement,
  findSupervisor,
  sendCommand,
} from "../../mailbox/commands/send-command.ts";
import { retry } from "../../mailbox/retry/retry.ts";
import { resultText } from "../../text/command-result.ts";
import { safe, wrap } from "../../text/render.ts";
import { type Action, SLASH_COMMANDS } from "./slash-commands.ts";

/** How long `chat` waits for an answer (ms): longer than a cancelled program has to end with the default settings. */
const ANSWER_MS = 10_000;

/** @throws the errors that the same verb of the command line throws */
export async function perform(
  ctx: Context,
  action: Exclude<Action, { kind: "exit" }>,
): Promise<void> {
  switch (action.kind) {
    case "send":
      return send(ctx, action.command, action.args);
    case "look":
      return look(ctx, action.verb, action.words);
    case "retry": {
      existingTree(ctx);
      const { trays } = await openMailbox(ctx);
      await retry(trays, action.id);
      if (ctx.json) ctx.out.json({ retried: action.id });
      else ctx.out.line(`${safe(action.id)} waits in the inbox again`);
      return;
    }
    case "help":
      return help(ctx);
  }
}

/** Prints an answer: wrapped on a terminal, as one line elsewhere. */
export function say(ctx: Pick<Context, "out" | "isTerminal" | "columns">, text: string): void {
  const lines = ctx.isTerminal ? wrap(text, ctx.columns, 2) : [text];
  for (const line of lines) ctx.out.line(line);
}

/** Prints an error as an answer, so that the conversation goes on. */
export function answerError(ctx: Context, error: unknown): void {
  const report = describeError(error);
  if (ctx.json) ctx.out.json({ error: report });
  else {
    const hint = report.hint === undefined ? "" : `; ${report.hint}`;
    say(ctx, safe(`${report.message}${hint}`));
  }
}

async function send(ctx: Context, command: string, args: Record<string, unknown>): Promise<void> {
  existingTree(ctx);
  const sent = await sendCommand(ctx.stateDir, command, args);
  const answer = (result: Record<string, unknown> | null, text: string): void => {
    if (ctx.json) ctx.out.json({ ...sent, result });
    else say(ctx, `${command} sent (${sent.id}); ${text}`);
  };
  if (findSupervisor(ctx.stateDir) === undefined) {
    answer(null, "no supervisor runs: it waits for the next one");
    return;
  }
  let result: Record<string, unknown> | undefined;
  try {
    result = await awaitAcknowledgement(ctx.stateDir, sent.id, ANSWER_MS);
  } catch (error) {
    const report = describeError(error);
    if (ctx.json) ctx.out.json({ ...sent, error: report });
    else say(ctx, `${command} sent (${sent.id}); not done: ${safe(report.message)}`);
    return;
  }
  if (result === undefined) answer(null, `no answer within ${ANSWER_MS / 1000} s; see /status`);
  else answer(result, resultText(result));
}

/** Runs a verb of the command line as if it had been typed there. */
async function look(ctx: Context, verb: string, words: readonly string[]): Promise<void> {
  const spec = await loadCommand(verb);
  const { values, positionals } = parseArguments(verb, words, {
    ...spec.options,
    ...SHARED_OPTIONS,
  });
  await spec.run({
    ...ctx,
    options: values as Context["options"],
    positionals,
    subcommand: "",
    rest: undefined,
  });
}

function help(ctx: Pick<Context, "out" | "json">): void {
  const commands = Object.values(SLASH_COMMANDS);
  if (ctx.json) {
    ctx.out.json({ commands: commands.map(({ usage, help: text }) => ({ usage, help: text })) });
    return;
  }
  const width = Math.max(...commands.map(({ usage }) => usage.length)) + 2;
  for (const { usage, help: text } of commands) ctx.out.line(`${usage.padEnd(width)}${text}`);
}
