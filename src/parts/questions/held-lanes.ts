/** Knows which tasks wait for the answers to open questions. Pure. */
import type { AgentSettings } from "../../core/settings.ts";
import { type Lane, readLane } from "../../core/waiting-task.ts";
import { holdOf, type Question } from "../../questions/question-file.ts";

/** The shortest time until a task tries again (ms). */
const AGAIN_MS_MIN = 1000;

const CODING: ReadonlySet<string> = new Set(["claude", "codex"]);

export class HeldLanes {
  private held = new Set<string>();
  /** Lanes of which one task was let through as a trial: the settings may have raised the limit. */
  private readonly tried = new Set<string>();
  /** When one task of a lane may try again (epoch ms), for questions with `again_ms`. */
  private readonly againMs = new Map<string, number>();

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
    const keys = open.flatMap((question) => [
      keyOf({ gate: holdOf(question.id), agent: "" }),
      ...agentsOf(question, agents).map((agent) => keyOf({ agent })),
    ]);
    this.held = new Set(keys);
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
