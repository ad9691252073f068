/** Knows which tasks wait for the answers to open questions. Pure. */
import type { AgentSettings } from "../../core/settings.ts";
import { type Lane, readLane } from "../../core/waiting-task.ts";
import { holdOf, type Question } from "../../questions/question-file.ts";

/** The shortest time until a task tries again (ms). */
const AGAIN_MS_MIN = 1000;

const CODING: ReadonlySet<string> = new Set(["claude", "codex"]);

export class HeldLanes {
  private held = new Map<string, Question>();
  /** Lanes of which one task was let through as a trial: the settings may have raised the limit. */
  private readonly tried = new Set<string>();
  /** When one task of a lane may try again (epoch ms), for questions with `again_ms`. */
  private readonly againMs = new Map<string, number>();
  /** Lanes whose last trial began after the last end of a task. */
  private readonly upToDate = new Set<string>();

  /**
   * Lets one more task through where the time for that has come. It looks more often while the question is young.
   * @param nowMs epoch ms
   * @returns whether a lane has opened
   */
  tryAgain(open: readonly Question[], nowMs: number): boolean {
    let hasOpened = false;
    for (const { id, again_ms: maxMs, asked_at_ms: askedMs } of open) {
      const key = keyOf({ gate: holdOf(id), agent: "" });
      if (maxMs === undefined || !this.tried.has(key)) continue;
      const waitMs = Math.min(maxMs, Math.max(AGAIN_MS_MIN, (nowMs - askedMs) / 4));
      const dueMs = this.againMs.get(key) ?? nowMs + waitMs;
      this.againMs.set(key, dueMs);
      if (nowMs < dueMs) continue;
      this.againMs.delete(key);
      this.tried.delete(key);
      hasOpened = true;
    }
    return hasOpened;
  }

  /** Takes over the questions that are open now. */
  update(open: readonly Question[], agents: readonly AgentSettings[]): void {
    this.held = new Map(
      open.flatMap((question) => [
        [keyOf({ gate: holdOf(question.id), agent: "" }), question],
        ...agentsOf(question, agents).map((agent) => [keyOf({ agent }), question] as const),
      ]),
    );
  }

  /** A task has ended: it may have done what others wait for. */
  noteEnd(): void {
    this.upToDate.clear();
  }

  /** The question that only a person can answer, so that no task of this lane starts by itself. */
  closedBy(lane: string): Question | undefined {
    const key = keyOf(readLane(lane));
    const question = this.held.get(key);
    if (question === undefined || question.ends_at_ms !== null) return undefined;
    const isTried = question.again_ms === undefined ? this.tried : this.upToDate;
    return this.tried.has(key) && isTried.has(key) ? question : undefined;
  }

  mayStart(lane: string): boolean {
    if (this.held.size === 0) return true;
    const key = keyOf(readLane(lane));
    return !this.held.has(key) || !this.tried.has(key);
  }

  noteStart(lane: string): boolean {
    if (this.held.size === 0) return false;
    const key = keyOf(readLane(lane));
    if (!this.held.has(key)) return false;
    this.tried.add(key);
    this.upToDate.add(key);
    return true;
  }
}

/** Tasks that wait for the same question share a key, even if they have different agents. */
function keyOf({ gate, agent }: Pick<Lane, "gate" | "agent">): string {
  return gate === undefined ? agent : `~${gate}`;
}

/** Agents whose tasks do not start before the answer. */
export function agentsOf(
  { agents: named }: Pick<Question, "agents">,
  agents: readonly AgentSettings[],
): string[] {
  const isAll = named.includes("*");
  return agents
    .filter(({ name, kind }) => CODING.has(kind) && (isAll || named.includes(name)))
    .map(({ name }) => name);
}
