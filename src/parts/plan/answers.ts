/** Questions that a node asks people, and their answers, in the kv of the node. */
import type { Clock } from "../../core/clock.ts";
import type { Checkpoint } from "../../core/envelope.ts";
import { isoTime } from "../../core/iso-time.ts";
import { isObject } from "../../core/json-object.ts";
import type { KvSource } from "../../core/kv.ts";
import type { RoadmapNode } from "../../core/roadmap.ts";
import type { KvStore } from "../../kv/store.ts";
import type { Answer } from "./rules/node-task.ts";

const QUESTION_KEY = "ctx.question";
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

/** The open question of a node; null if it has none. */
export function openQuestionOf(kv: KvStore, id: string): string | null {
  return askedAtMs(kv, id) === undefined ? null : (questionOf(kv, id)?.question ?? null);
}

/** Wall ms at which the node asked its open question; undefined when it has none. */
function askedAtMs(kv: KvStore, id: string): number | undefined {
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

/** The questions that wait for an answer, and their time limits. */
export class Questions {
  /** The wall time (ms) at which a node gets its default answer, by node id; null if it waits for a person. */
  private readonly dueMs = new Map<string, number | null>();
  private readonly answering = new Set<string>();

  constructor(
    private readonly kv: KvStore,
    private readonly clock: Clock,
  ) {}

  async ask(id: string, checkpoint: Checkpoint, source: KvSource): Promise<void> {
    await this.kv.put(id, QUESTION_KEY, checkpoint, source);
    this.dueMs.delete(id);
  }

  /** Nodes whose questions no person answered in time. */
  due(nodes: readonly RoadmapNode[]): string[] {
    const waiting = nodes.filter((node) => node.status === "needs_human");
    const ids = new Set(waiting.map((node) => node.id));
    for (const id of this.dueMs.keys()) if (!ids.has(id)) this.dueMs.delete(id);
    for (const id of ids) if (!this.dueMs.has(id)) this.dueMs.set(id, this.dueOf(id));
    const nowMs = this.clock.wallMs();
    return [...this.dueMs]
      .filter(([id, at]) => at !== null && at <= nowMs && !this.answering.has(id))
      .map(([id]) => id);
  }

  nextInMs(): number | undefined {
    const times = [...this.dueMs.values()].filter((at) => at !== null);
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - this.clock.wallMs());
  }

  /** @returns the answer, or undefined if the question has no default */
  async answerByDefault(id: string): Promise<string | undefined> {
    const checkpoint = questionOf(this.kv, id);
    if (checkpoint?.default === undefined) return undefined;
    this.answering.add(id);
    try {
      await answer(this.kv, id, checkpoint.default, "supervisor");
      this.dueMs.delete(id);
      return checkpoint.default;
    } finally {
      this.answering.delete(id);
    }
  }

  private dueOf(id: string): number | null {
    const sinceMs = askedAtMs(this.kv, id);
    const checkpoint = questionOf(this.kv, id);
    if (sinceMs === undefined || checkpoint?.default === undefined) return null;
    return checkpoint.timeout_ms === undefined ? null : sinceMs + checkpoint.timeout_ms;
  }
}

function keptOf(kv: KvStore, id: string): KeptAnswer[] {
  const value = kv.get(id, ANSWERS_KEY)?.value;
  // People may have written any value there.
  return Array.isArray(value) ? (value.filter(isObject) as unknown as KeptAnswer[]) : [];
}
