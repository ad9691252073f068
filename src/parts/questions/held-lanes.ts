/** Which tasks wait for the answers to open questions. Pure. */
import type { AgentSettings } from "../../core/settings.ts";
import { laneOf } from "../../core/waiting-task.ts";
import { holdOf, type Question } from "../../questions/question-file.ts";

const CODING: ReadonlySet<string> = new Set(["claude", "codex"]);

export class HeldLanes {
  private held = new Set<string>();
  /** One task of each lane tries it: the limit may have been raised in the settings. */
  private readonly tried = new Set<string>();

  /** These questions are open now. */
  update(open: readonly Question[], agents: readonly AgentSettings[]): void {
    const lanes = open.flatMap((question) => [
      laneOf({ gate: holdOf(question.id), agentId: undefined }),
      ...agentsOf(question, agents).map((agentId) => laneOf({ agentId })),
    ]);
    this.held = new Set(lanes);
  }

  mayStart(lane: string): boolean {
    return !this.held.has(lane) || !this.tried.has(lane);
  }

  noteStart(lane: string): void {
    if (this.held.has(lane)) this.tried.add(lane);
  }
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
