/** Which tasks wait for the answers to open questions. Pure. */
import type { AgentSettings } from "../../core/settings.ts";
import { type Lane, readLane } from "../../core/waiting-task.ts";
import { holdOf, type Question } from "../../questions/question-file.ts";

const CODING: ReadonlySet<string> = new Set(["claude", "codex"]);

export class HeldLanes {
  private held = new Set<string>();
  /** One task of each lane tries it: the limit may have been raised in the settings. */
  private readonly tried = new Set<string>();

  /** These questions are open now. */
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

/** Tasks that wait for one question wait together, whichever agents they have. */
function keyOf({ gate, agent }: Pick<Lane, "gate" | "agent">): string {
  return gate === undefined ? agent : `~${gate}`;
}

/** Agents of whose tasks none starts before the answer. */
export function agentsOf(
  { agents: named }: Pick<Question, "agents">,
  agents: readonly AgentSettings[],
): string[] {
  const isAll = named.includes("*");
  return agents
    .filter(({ name, kind }) => CODING.has(kind) && (isAll || named.includes(name)))
    .map(({ name }) => name);
}
