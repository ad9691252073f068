/** `ask`: asks a person or an agent, and waits for the answer if an option says so. */
import { setTimeout as pause } from "node:timers/promises";
import {
  type Context,
  defineCommand,
  durationOption,
  textOption,
} from "../../../cli/shell/command-spec.ts";
import { EXIT } from "../../../cli/shell/exit-codes.ts";
import { askOutside } from "../../../cli/shell/inside-run.ts";
import { existingTree } from "../../../cli/shell/options.ts";
import { compact } from "../../../core/compact.ts";
import { newId } from "../../../mailbox/files/random.ts";
import { QuestionStore } from "../../../questions/question-store.ts";
import { ask, type QuestionDraft } from "../requests/ask.ts";
import { REQUEST } from "../requests/taker.ts";
import { HUMAN } from "../scope/scope.ts";
import { addressOf } from "../send/send.ts";
import { textOf } from "../store/blobs.ts";
import type { MailFolder } from "../store/mail-folder.ts";
import { MessageReader } from "../store/read-messages.ts";
import { callerOf, openMail, SCOPE_OPTION, wayOf } from "./open-mail.ts";

const LOOK_MS = 200;

export const command = defineCommand({
  usage: "QUESTION [--to NAME] [--wait]",
  args: { min: 1, max: Number.POSITIVE_INFINITY },
  details: [
    "A question to a person, which is the default, stands in questions/open/ID.md and in `status`; `mailchute answer ID TEXT` answers it, or the text under `## Answer` in the file. The agent that asked gets the answer as a message, and is woken for it when it does not run. A question to an agent is a message; it answers with `say TEXT --to NAME --reply-to ID`.",
    "With --wait it prints the answer. Exit code 1: the question was taken away, 124: the time was over.",
  ],
  examples: ['ask "Which database do we use?"', 'ask "Is the schema merged?" --to ann --wait'],
  options: {
    ...SCOPE_OPTION,
    to: textOption("NAME", "an agent, or human (default)"),
    id: textOption("ID", "with the same id it is asked once"),
    from: textOption("NAME", "who asks (default: human, in a run its agent)"),
    wait: { type: "flag", help: "wait for the answer, and print it" },
    timeout: durationOption("TIME", "wait no longer than this: 30, 500ms, 5m"),
  },
  async run(ctx) {
    const { folder, store, drop } = await openMail(ctx, ctx.options.scope);
    const { id = newId(Date.now(), "q"), from, to } = ctx.options;
    const text = ctx.positionals.join(" ");
    const { scope } = folder;
    const names = to === undefined ? [] : [addressOf(to, scope)];
    if (drop === undefined) {
      const via = wayOf(ctx.env);
      const draft: QuestionDraft = {
        id,
        scope,
        from: callerOf(ctx.env, from),
        via,
        to: names,
        text,
      };
      ask({ stateDir: existingTree(ctx).dir, store }, draft, Date.now());
    } else {
      const body = compact({ ask: true, id, from_agent: from, to: names, content: text });
      await askOutside(ctx, drop, newId(Date.now(), "r"), { ending: REQUEST, body });
    }
    const isForPerson = names.length === 0 || names[0]?.endsWith(`:${HUMAN}`) === true;
    const answer = ctx.options.wait
      ? await waitForAnswer(ctx, folder, { id, isForPerson })
      : undefined;
    if (ctx.json) ctx.out.json({ id, scope, ...answer });
    else if (answer === undefined) ctx.out.line(`question ${id}: recorded`);
    else if (answer.answer !== null) ctx.out.line(answer.answer);
    else ctx.out.note(answer.why);
    if (answer === undefined || answer.answer !== null) return EXIT.ok;
    return answer.isOver ? EXIT.failed : EXIT.waitTimedOut;
  },
});

type Answer = { answer: string } | { answer: null; isOver: boolean; why: string };

type Waiting = Pick<Context, "stateDir"> & { options: { timeout: number | undefined } };

async function waitForAnswer(
  { stateDir, options }: Waiting,
  folder: MailFolder,
  { id, isForPerson }: { id: string; isForPerson: boolean },
): Promise<Answer> {
  const untilMs = performance.now() + (options.timeout ?? Number.POSITIVE_INFINITY);
  const questions = new QuestionStore(stateDir);
  const log = new MessageReader(folder);
  for (;;) {
    // Whether the question is open is read before the answer: an answer that comes in between closes the question.
    const isOpen = !isForPerson || questions.find(id) !== undefined;
    const answer = isForPerson ? questions.answerOf(id) : replyTo(folder, log, id);
    if (answer !== undefined) return { answer };
    if (!isOpen) return { answer: null, isOver: true, why: `the question ${id} was taken away` };
    if (performance.now() > untilMs)
      return { answer: null, isOver: false, why: `there is no answer to ${id} yet` };
    await pause(LOOK_MS);
  }
}

function replyTo(folder: MailFolder, log: MessageReader, id: string): string | undefined {
  for (const message of log.next({ any: [JSON.stringify(id)] }))
    if (message.reply_to === id) return textOf(folder, message) ?? "";
  return undefined;
}
