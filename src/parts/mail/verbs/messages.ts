/** `messages`: prints the messages of a scope's agents and people. With `--follow` it prints new ones as they come. */
import { defineCommand, numberOption } from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { ChangeSignal } from "../../../host/change-signal.ts";
import { formatAddress } from "../scope/scope.ts";
import { readCursor } from "../store/cursors.ts";
import { filterFor, isMailFor } from "../store/inbox.ts";
import type { LineFilter } from "../store/line-filter.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { recipientsOf } from "../store/message.ts";
import { MessageReader, type Numbered } from "../store/read-messages.ts";
import { callerOf, nameIn, openMail, SCOPE_OPTION } from "./open-mail.ts";
import { Printer } from "./printer.ts";

const COUNT_MAX = 1_000_000;

export const command = defineCommand({
  usage: "[--from NAME] [--mentions NAME] [--unread] [--thread ID] [--last N] [-f]",
  endsWithReader: true,
  details: [
    "Without options it prints all messages of the scope, the oldest first. Each has a number, which it keeps. --unread prints only mail that its reader has not read: the agent of --mentions, else you. It marks nothing as read; `mail --ack` does.",
    "With --json each message is a line of JSON.",
  ],
  examples: ["messages --last 20", "messages --mentions ann --unread", "messages -f --json"],
  options: {
    ...SCOPE_OPTION,
    from: { type: "text", value: "NAME", help: "only messages of this agent; human: of people" },
    mentions: { type: "text", value: "NAME", help: "only messages to this agent" },
    unread: { type: "flag", help: "only mail that is unread" },
    thread: { type: "text", value: "ID", help: "only this message, and what belongs to it" },
    last: numberOption("N", "only the last N of them", { min: 0, max: COUNT_MAX }),
    follow: { type: "flag", short: "f", help: "show new messages until Ctrl-C" },
  },
  async run(ctx) {
    const { folder } = await openMail(ctx, ctx.options.scope);
    const { after, filter, isWanted } = filterOf(ctx, folder);
    const reader = new MessageReader(folder, after);
    const { last, follow } = ctx.options;
    const printer = new Printer(ctx, folder);
    for (const message of last === undefined ? [] : reader.lastOf(last, isWanted, filter))
      await printer.add(message);
    for (;;) {
      // Watching begins before the read, so no message is missed.
      const change = follow ? new ChangeSignal([folder.dir]) : undefined;
      for (const message of reader.next(filter)) {
        const written = isWanted(message) ? printer.add(message) : undefined;
        if (written !== undefined) await written;
      }
      await printer.flush();
      if (change === undefined) break;
      await change.next();
      change.close();
    }
    if (reader.badCount > 0)
      ctx.out.note(
        `${reader.badCount} lines of ${folder.dir} are torn or foreign and were skipped`,
      );
    return EXIT.ok;
  },
});

type Options = Readonly<{
  from: string | undefined;
  mentions: string | undefined;
  unread: boolean;
  thread: string | undefined;
}>;

interface Filter {
  /** Only messages with higher numbers are printed. */
  after: number;
  /** Finds lines that may be wanted; undefined: any line may be wanted. */
  filter: LineFilter | undefined;
  isWanted: (message: Numbered) => boolean;
}

/** Turns the options into a filter. @throws ErrUsage */
function filterOf(
  { options, env }: { options: Options; env: NodeJS.ProcessEnv },
  folder: MailFolder,
): Filter {
  const { from, mentions, thread } = options;
  const sender = from === undefined ? undefined : nameIn(folder.scope, from);
  const named = mentions === undefined ? undefined : nameIn(folder.scope, mentions);
  const reader = options.unread ? (named ?? callerOf(env)) : undefined;
  const addressFor = (name: string): string => formatAddress({ ...folder.scope, name });
  const isWanted = (message: Numbered): boolean =>
    (sender === undefined || message.from_agent === sender) &&
    (named === undefined || recipientsOf(message).includes(addressFor(named))) &&
    (thread === undefined || [message.id, message.thread, message.reply_to].includes(thread)) &&
    (reader === undefined || isMailFor(folder, message, reader));
  const of = reader ?? named;
  const has = thread ?? sender;
  return {
    after: reader === undefined ? 0 : readCursor(folder, reader).upto,
    filter: of === undefined ? textFilter(has) : filterFor(folder, of),
    isWanted,
  };
}

function textFilter(text: string | undefined): LineFilter | undefined {
  return text === undefined ? undefined : { any: [JSON.stringify(text)] };
}
