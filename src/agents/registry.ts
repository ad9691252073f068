/** From agent settings to the agent that runs: the only place that knows the kinds. */
import { ErrInvalidConfig } from "../core/errors.ts";
import { BUILT_IN_EXEC } from "../core/matching.ts";
import type { AgentSettings } from "../core/settings.ts";
import type { Agent } from "./agent.ts";
import { ExecAgent } from "./exec-agent.ts";
import { ModuleAgent } from "./module-agent.ts";

export class AgentRegistry {
  private readonly agents = new Map<string, Agent>();

  constructor(configured: readonly AgentSettings[]) {
    this.agents.set(BUILT_IN_EXEC.name, new ExecAgent(BUILT_IN_EXEC));
    for (const settings of configured) this.agents.set(settings.name, makeAgent(settings));
  }

  get(name: string): Agent | undefined {
    return this.agents.get(name);
  }

  /** Has every agent make ready what its first run would wait for. */
  warmUp(): void {
    for (const agent of this.agents.values()) agent.warmUp();
  }
}

function makeAgent(settings: AgentSettings): Agent {
  switch (settings.kind) {
    case "exec":
      return new ExecAgent(settings);
    case "module":
      return new ModuleAgent(settings);
    case "codex":
    case "claude":
      // Refused with the settings.
      throw new ErrInvalidConfig(
        `agents: ${settings.name}: the kind ${settings.kind} is not built in yet`,
      );
  }
}
