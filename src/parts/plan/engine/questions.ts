/** The questions of nodes and their answers: `ctx.question` and `ctx.answers` of each node in kv. */
import type { Clock } from "../../../core/clock.ts";
import type { Checkpoint } from "../../../core/envelope.ts";
import type { KvSource } from "../../../core/kv.ts";
import type { RoadmapNode } from "../../../core/roadmap.ts";
import type { KvStore } from "../../../kv/store.ts";
import { answer, answersOf, askedAtMs, QUESTION_KEY, questionOf } from "../answers.ts";
import type { Answer } from "../rules/node-task.ts";

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

  /** The open question of a node; null if it has none. */
  questionOf(id: string): string | null {
    return askedAtMs(this.kv, id) === undefined
      ? null
      : (questionOf(this.kv, id)?.question ?? null);
  }

  answersOf(id: string): Answer[] {
    return answersOf(this.kv, id);
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
