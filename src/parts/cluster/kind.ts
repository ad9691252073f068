/** Agents of kind `remote`: their tasks run at other machines. A worker only puts them where the bridge finds them. */
import { Agent } from "../../agents/agent.ts";
import type { CodingKind } from "../../agents/coding-kind.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { AgentSettings } from "../../core/settings.ts";
import { clusterGate } from "./protocol/dispatch.ts";

const DEFAULT_TARGET = "any";

/** The machines at which the tasks of a remote agent run. */
export function targetOf({ where = DEFAULT_TARGET }: Pick<AgentSettings, "where">): string {
  return where;
}

class RemoteAgent extends Agent {
  async run(): Promise<AttemptOutcome> {
    const target = targetOf(this.settings);
    return {
      kind: "deferred",
      message: `it runs at a machine that serves ${target}`,
      delayMs: null,
      hold: clusterGate(target),
    };
  }
}

export const remote: CodingKind = {
  make: (settings) => new RemoteAgent(settings),
  // Its runs have no stream here.
  newReader: () => () => [],
  takesMessages: () => false,
};
