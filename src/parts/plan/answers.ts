/** Questions that a node asks people, and their answers, in the kv of the node. */
import type { Clock } from "../../core/clock.ts";
import type { Checkpoint } from "../../core/envelope.ts";
import { isoTime } from "../../core/iso-time.ts";
import { isObject } from "../../core/json-object.ts";
import type { KvStore } from "../../kv/store.ts";
import type { Answer } from "./rules/node-task.ts";

export const QUESTION_KEY = "ctx.question";
const ANSWERS_KEY = "ctx.answers";
/** The key for the time at which a command last set the node open. */
const OPENED_KEY = "ctx.opened";
/** How many answers are kept. A node that asks without end sees only the newest. */
const ANSWERS_MAX = 20;

interface KeptAnswer extends Answer {
  /** Wall ms at which the question was asked. It identifies the question, even if the clock was set later. Null: no question. */
  asked_at: number | null;
}

/** The answers that the node got, oldest first. */
export function answersOf(kv: KvStore, id: string): Answer[] {
  return keptOf(kv, id).map(({ question, answer }) => ({ question, answer }));
}

/** The question that the node asked last. */
export function questionOf(kv: KvStore, id: string): Checkpoint | undefined {
  return kv.get(id, QUESTION_KEY)?.value as Checkpoint | undefined;
}

/** Records that a person wants the node to run. The roadmap alone cannot show this: its text might be an old copy. */
export async function noteOpened(kv: KvStore, clock: Clock, id: string): Promise<void> {
  const source = { run: null, lease: null, attempt: 0, by: "cli" };
  await kv.put(id, OPENED_KEY, isoTime(clock.wallMs()), source);
}

/** Wall ms at which a command last set the node open. */
export function openedAtMs(kv: KvStore, id: string): number | undefined {
  return kv.get(id, OPENED_KEY)?.t;
}

/** Wall ms at which the node asked its open question; undefined when it has none. */
export function askedAtMs(kv: KvStore, id: string): number | undefined {
  const askedAt = kv.get(id, QUESTION_KEY)?.t;
  return keptOf(kv, id).at(-1)?.asked_at === askedAt ? undefined : askedAt;
}

/**
 * Stores the answer for the node's next run. Storing the same answer to the same question twice changes nothing.
 * @param by the name of the person or program that answers
 */
export async function answer(kv: KvStore, id: string, text: string, by: string): Promise<void> {
  const asked = kv.get(id, QUESTION_KEY);
  const known = keptOf(kv, id);
  const last = known.at(-1);
  const next: KeptAnswer = {
    question: (asked?.value as Checkpoint | undefined)?.question ?? "",
    answer: text,
    asked_at: asked?.t ?? null,
  };
  if (last !== undefined && last.answer === text && last.asked_at === next.asked_at) return;
  const answers = [...known, next].slice(-ANSWERS_MAX);
  await kv.put(id, ANSWERS_KEY, answers, { run: null, lease: null, attempt: 0, by });
}

function keptOf(kv: KvStore, id: string): KeptAnswer[] {
  const value = kv.get(id, ANSWERS_KEY)?.value;
  // People may have written any value there.
  return Array.isArray(value) ? (value.filter(isObject) as unknown as KeptAnswer[]) : [];
}
