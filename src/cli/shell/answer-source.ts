/** The port for a part that has its own questions besides the files of `questions/`, such as the plan. Types only. */
import type { Context } from "./command-spec.ts";

export interface Answered {
  /** The id as the question spells it. People may type it in another case. */
  id: string;
  question: string;
  /** What happens next, for people. */
  said: string;
}

/**
 * Answers a question with this id.
 * @throws ErrTaskNotFound when the part does not know the id, ErrInvalidTransition when the id waits for no answer
 */
export type AnswerSource = (ctx: Context, id: string, text: string) => Promise<Answered>;
