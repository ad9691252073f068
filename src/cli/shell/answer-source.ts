/** The port of a part that has questions of its own, beside the files of `questions/`: the plan has. Shapes only. */
import type { Context } from "./command-spec.ts";

export interface Answered {
  question: string;
  /** What follows, as people read it. */
  said: string;
}

/**
 * Answers a question of this id.
 * @throws ErrTaskNotFound when it knows no such id, ErrInvalidTransition when that waits for no answer
 */
export type AnswerSource = (ctx: Context, id: string, text: string) => Promise<Answered>;
