/** Parts that have questions of their own. */
import type { AnswerSource } from "../cli/shell/answer-source.ts";
import { planAnswers } from "../parts/plan/verbs/answer.ts";

export const ANSWER_SOURCES: readonly AnswerSource[] = [planAnswers];
