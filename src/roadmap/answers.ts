/** The conversation between a node and the people it asks, in the node's own kv. */
import type { Checkpoint } from "../core/envelope.ts";
import type { KvStore } from "./kv.ts";
import type { Answer } from "./node-task.ts";

export const QUESTION_KEY = "ctx.question";
const ANSWERS_KEY = "ctx.answers";
/** A node that asks for ever is shown its last questions only. */
const ANSWERS_MAX = 20;

export function answersOf(kv: KvStore, id: string): Answer[] {
  const value = kv.get(id, ANSWERS_KEY)?.value;
  return Array.isArray(value) ? (value as Answer[]) : [];
}

/** The question that a node waits for an answer to. */
export function questionOf(kv: KvStore, id: string): Checkpoint | undefined {
  return kv.get(id, QUESTION_KEY)?.value as Checkpoint | undefined;
}

/** Wall ms since which the node's question waits for an answer; undefined when it has none, or has got it. */
export function askedAtMs(kv: KvStore, id: string): number | undefined {
  const asked = kv.get(id, QUESTION_KEY)?.t;
  const answered = kv.get(id, ANSWERS_KEY)?.t;
  return asked !== undefined && answered !== undefined && answered >= asked ? undefined : asked;
}

/**
 * Keeps the answer for the node's next run. The same answer to the same question again changes nothing.
 * @param by who answers, as people read it
 */
export async function answer(kv: KvStore, id: string, text: string, by: string): Promise<void> {
  const question = questionOf(kv, id)?.question ?? "";
  const known = answersOf(kv, id);
  const last = known.at(-1);
  if (last?.question === question && last.answer === text) return;
  const answers = [...known, { question, answer: text }].slice(-ANSWERS_MAX);
  await kv.put(id, ANSWERS_KEY, answers, { run: null, lease: null, attempt: 0, by });
}
