/** `answer`: answers a question about a budget, or a question of a node of the plan. */
import { ANSWER_SOURCES } from "../../app/answers.ts";
import { ErrTaskNotFound } from "../../core/errors.ts";
import { explainBadAnswer } from "../../questions/question-file.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import { safe } from "../../text/render.ts";
import type { Answered } from "../shell/answer-source.ts";
import { type Context, defineCommand, ErrUsage } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { existingTree } from "../shell/options.ts";

export const command = defineCommand({
  usage: "ID TEXT",
  args: { min: 2, max: Number.POSITIVE_INFINITY },
  details: [
    "ID is a question that `status` shows, or a node of the plan that waits. A budget takes yes (once more the same amount), no (its tasks fail) or a new limit. The next run of a node, or of a task whose agent asked, finds question and answer in its packet. You may also write the answer into questions/open/ID.md. Exit code 3: there is no such question and no such node, 4: it waits for no answer.",
  ],
  examples: [
    "answer paint blue",
    'answer deploy "not before Monday"',
    "answer budget.day.2026-11-24.usd.1 8",
  ],
  options: {},
  async run(ctx) {
    const [id = "", ...words] = ctx.positionals;
    const text = words.join(" ");
    const answered = await answerQuestion(ctx, id, text);
    const { question, said } = answered;
    if (ctx.json) ctx.out.json({ id: answered.id, question, answer: text });
    else ctx.out.line(said);
    return EXIT.ok;
  },
});

/** @throws like `AnswerSource`; ErrUsage when the question does not take this answer */
export async function answerQuestion(ctx: Context, id: string, text: string): Promise<Answered> {
  return answerFile(ctx, id, text) ?? (await answerPart(ctx, id, text));
}

/** Undefined when no question file has this id. */
function answerFile(ctx: Context, id: string, text: string): Answered | undefined {
  const store = new QuestionStore(existingTree(ctx).dir);
  const found = store.find(id);
  if (found === undefined) return undefined;
  const fault = explainBadAnswer(found.expects, text);
  if (fault !== undefined) throw new ErrUsage(fault);
  store.answer(id, text, "cli", Date.now());
  return { id: found.id, question: found.question, said: `${safe(id)} is answered` };
}

async function answerPart(ctx: Context, id: string, text: string): Promise<Answered> {
  for (const answer of ANSWER_SOURCES) return await answer(ctx, id, text);
  throw new ErrTaskNotFound(`there is no question ${JSON.stringify(id)}`, { id });
}
