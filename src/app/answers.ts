/** Lists the parts to which the command `answer` can pass an answer. */
import type { AnswerSource } from "../cli/shell/answer-source.ts";
import { planAnswers } from "../parts/plan/verbs/answer.ts";

export const ANSWER_SOURCES: readonly AnswerSource[] = [planAnswers];
