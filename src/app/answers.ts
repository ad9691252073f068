/** Lists the parts that the command `answer` can pass an answer to. */
import type { AnswerSource } from "../cli/shell/answer-source.ts";
import { planAnswers } from "../parts/plan/verbs/answer.ts";

export const ANSWER_SOURCES: readonly AnswerSource[] = [planAnswers];
