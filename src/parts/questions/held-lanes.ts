/** Knows which tasks wait for the answers to open questions, and of which lanes one has tried to start. Pure. */
import type { ClosedGate } from "../../core/documents.ts";
import { closedGate } from "../../core/gates.ts";
import { type AgentSettings, hasCosts } from "../../core/settings.ts";
import type { Lane } from "../../core/waiting-task.ts";
import { holdOf, type Question } from "../../questions/question-file.ts";

/** The shortest time until a task tries again (ms). */
const AGAIN_MS_MIN = 1000;

export class HeldLanes {
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

  /** A task has ended: it may have done what others wait for. */
  noteEnd(): void {
    this.upToDate.clear();
  }

  /** One task of each lane may try. */
  mayPass(lane: Lane): boolean {
    return !this.tried.has(keyOf(lane));
  }

  /** Whether no task of this lane tries again by itself. @param again_ms of the question */
  isShut(lane: Lane, { again_ms }: Pick<Question, "again_ms">): boolean {
    const key = keyOf(lane);
    return this.tried.has(key) && (again_ms === undefined || this.upToDate.has(key));
  }

  noteStart(lane: Lane): void {
    this.tried.add(keyOf(lane));
    this.upToDate.add(keyOf(lane));
  }
}

/** Tasks that wait for the same question share a key, even if they have different agents. */
function keyOf({ gate, agent }: Pick<Lane, "gate" | "agent">): string {
  return gate === undefined ? agent : `~${gate}`;
}

/** What holds back the tasks that wait for the answer. */
export function gateOf(
  { id, agents: named, ends_at_ms: endsAtMs, question }: Question,
  agents: readonly AgentSettings[],
): ClosedGate {
  const isNamed = (name: string): boolean => named.includes("*") || named.includes(name);
  const waiting = agents.filter((one) => hasCosts(one) && isNamed(one.name));
  const todo = `mailchute answer ${id} TEXT, or write the answer into questions/open/${id}.md`;
  const until_ms = endsAtMs ?? 0;
  return closedGate(holdOf(id), question, todo, {
    agents: waiting.map(({ name }) => name),
    until_ms,
  });
}
